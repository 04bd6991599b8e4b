// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

// stockFolder is where make perf-tools puts the stock scheduler, seen from this folder.
const stockFolder = "../../_output/perf"

// startStock starts the stock scheduler on a devcluster, which has none, for the first story that wants it. A
// cluster that was there before has its own.
var startStock = sync.OnceValue(func() error {
	if *kubeconfigFlag != "" {
		return nil
	}
	binary, err := rig.BinaryIn(stockFolder, "kube-scheduler")
	if err != nil {
		return fmt.Errorf("the stock scheduler is built by `make perf-tools`: %w", err)
	}
	flags, err := rig.EmulatedVersion(world.client)
	if err != nil {
		return err
	}
	world.stock, err = rig.StartScheduler(rig.SchedulerOptions{Name: "kube-scheduler", Binary: binary, Kubeconfig: world.kubeconfig, Dir: world.dir, Args: flags})
	return err
})

// by has a scheduler place pods.
func by(scheduler string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.SchedulerName = scheduler }
}

// besideStock has the stock scheduler place a Deployment and, when it is gone, ours place the same with nothing
// changed but the schedulerName.
func (s *story) besideStock(app string, pods int, change ...func(*corev1.PodSpec)) (stock, ours *rig.Observation) {
	s.Helper()
	return s.besideStockAfter(app, pods, func() *rig.Observation { return s.settled(app, pods) }, change...)
}

// besideStockAfter is that of what becomes of the Deployment when the same happens to it.
func (s *story) besideStockAfter(app string, pods int, happens func() *rig.Observation, change ...func(*corev1.PodSpec)) (stock, ours *rig.Observation) {
	s.Helper()
	s.must(startStock(), "starting the stock scheduler")
	placed := func(scheduler string) *rig.Observation {
		s.Helper()
		s.deployed(app, pods, "", append(change, by(scheduler))...)
		o := happens()
		s.Logf("%s:\n%s", scheduler, o.Draw())
		s.deleted(app)
		return o
	}
	return placed(corev1.DefaultSchedulerName), placed(s.scheduler)
}

// skew is by how many pods the values of the first level differ at most.
func skew(o *rig.Observation) int {
	pods := slices.Collect(maps.Values(evenness.Counts(0, o.Nodes)))
	return slices.Max(pods) - slices.Min(pods)
}

// constrained adds soft constraints over keys, in this order.
func constrained(app string, keys ...string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		for _, key := range keys {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selects(app),
			})
		}
	}
}

// Nodes that carry a soft taint get no pod from either while others have room.
func TestStockSoftTaints(t *testing.T) {
	s := begin(t, spread, byZone)
	zones := s.zones(20, 4, 4)
	soft := slices.Concat(zones[0][2:], zones[1][2:])
	s.softTaint(soft)
	onSoft := func(o *rig.Observation) (n int) {
		for _, node := range soft {
			n += o.OnNodes()[node]
		}
		return n
	}
	stock, ours := s.besideStock("app", 12)
	if is, was := onSoft(ours), onSoft(stock); is > 0 {
		t.Errorf("%d of 12 pods are on soft-tainted nodes, and %d of the stock scheduler's", is, was)
	}
	s.counts(ours, 0, 6, 6)
	s.beside(evennessCases[4], fmt.Sprint(onSoft(stock)), fmt.Sprint(onSoft(ours)))
}

// Zones of ten, five and two nodes. The stock scheduler weighs zones and hosts against each other; ours has zones
// even and then hosts, in whatever order the constraints are listed, and where a pod has none.
func TestStockUnequalZones(t *testing.T) {
	for i, tc := range []struct {
		name string
		keys []string
	}{{"hosts-first", []string{corev1.LabelHostname, zoneLabel}}, {"zones-first", []string{zoneLabel, corev1.LabelHostname}}, {"nothing-asked", nil}} {
		t.Run(tc.name, func(t *testing.T) {
			s := begin(t, spread, byZone)
			s.zones(50, 10, 5, 2)
			stock, ours := s.besideStock("app", 61, constrained("app", tc.keys...))
			s.counts(ours, 0, 21, 20, 20)
			s.even(ours)
			s.beside(evennessCases[i], byZones(stock), byZones(ours))
			if i == 0 {
				s.picture(stock, ours)
			}
			if is, was := skew(ours), skew(stock); is > was {
				t.Errorf("zones differ by %d pods, and by %d with the stock scheduler", is, was)
			}
		})
	}
}

// Nodes without the key of a constraint get no pod from either while others have room.
func TestStockNodesWithoutTheKey(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 2, 1)
	s.nodes(2, 50, nil)
	without := func(o *rig.Observation) int { return evenness.Counts(0, o.Nodes)[""] }
	stock, ours := s.besideStock("app", 12, constrained("app", zoneLabel))
	if is, was := without(ours), without(stock); is > was || is > 0 {
		t.Errorf("%d of 12 pods are on nodes without the key, and %d of the stock scheduler's", is, was)
	}
	s.exactly(ours, 0, map[string]int{"zone-a": 6, "zone-b": 6})
	s.beside(evennessCases[5], fmt.Sprint(without(stock)), fmt.Sprint(without(ours)))
}

// Six Deployments under one selector are one workload to both: what the constraint counts is what it selects.
func TestStockOneSelectorForMany(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 2, 2, 2)
	s.must(startStock(), "starting the stock scheduler")
	deployed := func(scheduler string) *rig.Observation {
		for i := range 6 {
			app := fmt.Sprint("app-", i)
			template := s.template(app, "", func(spec *corev1.PodSpec) {
				spec.SchedulerName = scheduler
				spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
					MaxSkew: 1, TopologyKey: zoneLabel, WhenUnsatisfiable: corev1.ScheduleAnyway,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"svc": "x"}},
				}}
			})
			template.Labels["svc"] = "x"
			s.deployment(app, 2, template)
		}
		o := s.observe("svc=x", 12, isRunning)
		s.Logf("%s:\n%s", scheduler, o.Draw())
		for i := range 6 {
			s.delete(named[appsv1.Deployment](s, fmt.Sprint("app-", i)))
		}
		s.observe("svc=x", 0, isRunning)
		return o
	}
	stock, ours := deployed(corev1.DefaultSchedulerName), deployed(s.scheduler)
	s.counts(stock, 0, 4, 4, 4)
	s.counts(ours, 0, 4, 4, 4)
	s.beside(evennessCases[6], byZones(stock), byZones(ours))
}

// Pods without an owner or a constraint are spread over zones by both if a Service selects them.
func TestStockBarePodsBehindAService(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 4, 2, 1)
	s.must(startStock(), "starting the stock scheduler")
	s.make(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "svc"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "app"}, Ports: []corev1.ServicePort{{Port: 80}},
	}})
	placed := func(scheduler string) *rig.Observation {
		const pods = 9
		for i := range pods {
			s.pod(fmt.Sprintf("bare-%d", i), s.template("app", "", by(scheduler)))
		}
		o := s.settled("app", pods)
		s.Logf("%s:\n%s", scheduler, o.Draw())
		for i := range o.Pods {
			s.delete(&o.Pods[i])
		}
		s.settled("app", 0)
		return o
	}
	stock, ours := placed(corev1.DefaultSchedulerName), placed(s.scheduler)
	s.counts(ours, 0, 3, 3, 3)
	s.beside(evennessCases[7], byZones(stock), byZones(ours))
	if is, was := skew(ours), skew(stock); is > was {
		t.Errorf("zones differ by %d pods, and by %d with the stock scheduler", is, was)
	}
}

// Pods of five sizes on nodes of three, which ask for nothing. By how much the nodes differ in the share of CPU that
// is requested is at most what the stock scheduler leaves.
func TestStockUnequalNodes(t *testing.T) {
	s := begin(t, spread, byZone)
	room := make(map[string]int)
	for _, units := range []int{40, 80, 640} {
		for _, node := range s.nodes(3, units, nil) {
			room[node] = units
		}
	}
	s.must(startStock(), "starting the stock scheduler")
	sizes := []int64{1, 2, 5, 10, 20}
	loads := func(scheduler string) (least, most int) {
		used := make(map[string]int)
		for _, size := range sizes {
			// One after the other, so that both see the pods in the same order.
			for node, pods := range s.deployed(fmt.Sprint("app-", size), 20, "", asks(size), by(scheduler)).OnNodes() {
				used[node] += pods * int(size)
			}
		}
		var percent []int
		for node, units := range room {
			percent = append(percent, 100*used[node]/units)
		}
		slices.Sort(percent)
		s.Logf("%s: nodes at %d %% of their CPU", scheduler, percent)
		for _, size := range sizes {
			s.deleted(fmt.Sprint("app-", size))
		}
		return percent[0], percent[len(percent)-1]
	}
	stockLeast, stockMost := loads(corev1.DefaultSchedulerName)
	least, most := loads(s.scheduler)
	if most-least > stockMost-stockLeast {
		t.Errorf("nodes differ by %d %% of their CPU, and by %d %% with the stock scheduler", most-least, stockMost-stockLeast)
	}
	s.beside(evennessCases[8], fmt.Sprintf("%d %% to %d %%", stockLeast, stockMost), fmt.Sprintf("%d %% to %d %%", least, most))
}

// Pods of high priority take the place of others in a cluster that is full: as many as with the stock scheduler, and even by zone.
func TestStockPreemption(t *testing.T) {
	s := begin(t, spread, byZone)
	high := s.highPriority()
	s.zones(3, 4, 4, 4)
	s.must(startStock(), "starting the stock scheduler")
	const room, pods = 36, 12
	taken := func(scheduler string) (o *rig.Observation, victims int) {
		s.deployed("low", room, "", asks(1), by(scheduler))
		o = s.deployed("high", pods, "", asks(1), by(scheduler), high, constrained("high", zoneLabel))
		victims = room
		for _, p := range s.podsOf("low") {
			if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
				victims--
			}
		}
		s.Logf("%s: %d victims\n%s", scheduler, victims, o.Draw())
		s.deleted("low")
		s.deleted("high")
		return o, victims
	}
	stock, stockVictims := taken(corev1.DefaultSchedulerName)
	ours, victims := taken(s.scheduler)
	s.counts(ours, 0, 4, 4, 4)
	if victims > stockVictims {
		t.Errorf("%d pods had to make way, and %d with the stock scheduler", victims, stockVictims)
	}
	s.beside(evennessCases[9], byZones(stock), byZones(ours))
}

// Old pods leave while new ones come. The stock scheduler counts both, and what is left when the old ones are gone is lopsided.
func TestStockRollingUpdates(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 4, 3, 2)
	stock, ours := s.besideStockAfter("app", 20, func() *rig.Observation {
		for i := range 3 {
			s.roll("app", fmt.Sprintf("r%d", i+1))
		}
		return s.settled("app", 20)
	}, constrained("app", zoneLabel))
	s.counts(ours, 0, 7, 7, 6)
	s.beside(evennessCases[10], byZones(stock), byZones(ours))
}

// A zone is closed while a Deployment grows, and open when it grows again.
func TestStockCordonedZone(t *testing.T) {
	s := begin(t, spread, byZone)
	closed := s.zones(50, 4, 2, 2)[2]
	stock, ours := s.besideStockAfter("app", 6, func() *rig.Observation {
		s.cordon(true, closed...)
		s.scaledTo("app", 18)
		s.cordon(false, closed...)
		return s.scaledTo("app", 24)
	}, constrained("app", zoneLabel))
	s.counts(ours, 0, 8, 8, 8)
	s.beside(evennessCases[11], byZones(stock), byZones(ours))
}

// A node that refuses every pod looks the emptiest, so that the stock scheduler gives it every replacement.
func TestStockBadNode(t *testing.T) {
	s := begin(t, spread)
	long := time.Minute // for which the figure is
	if *evennessFlag == "" && !*wholeFlag {
		long = 10 * time.Second // pod after pod is lost, which holds up other stories
	}
	s.must(startStock(), "starting the stock scheduler")
	_, bad := s.bad("rejected", 20, 10)
	lost := func(scheduler string) int {
		before := s.losses()
		s.deploy("app", 60, "", by(scheduler))
		time.Sleep(long)
		n := before.total()
		s.deleted("app")
		return n
	}
	ours := lost(s.scheduler)
	stock := lost(corev1.DefaultSchedulerName)
	if ours > 6 || stock < ours {
		t.Errorf("on %s %d pods were lost, and %d of the stock scheduler's", bad, ours, stock)
	}
	s.beside(evennessCases[12], fmt.Sprint(stock), fmt.Sprint(ours))
}
