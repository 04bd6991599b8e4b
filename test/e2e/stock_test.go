// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

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
	world.stock, err = rig.StartScheduler(rig.SchedulerOptions{Name: "kube-scheduler", Binary: binary, Kubeconfig: world.kubeconfig, Dir: world.dir})
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
		s.deploy(app, int32(pods), "", append(change, by(scheduler))...)
		s.settled(app, pods)
		o := happens()
		s.Logf("%s:\n%s", scheduler, o.Draw())
		s.deleted(app)
		return o
	}
	return placed(corev1.DefaultSchedulerName), placed(s.scheduler)
}

// skew is by how many pods the values of the first level differ at most.
func skew(o *rig.Observation) int {
	var pods []int
	for _, n := range evenness.Counts(0, o.Nodes) {
		pods = append(pods, n)
	}
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
	var soft []string
	for _, name := range []string{"zone-a", "zone-b"} {
		s.nodes(2, 20, zone(name))
		soft = append(soft, s.nodes(2, 20, zone(name))...)
	}
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
			for z, nodes := range []int{10, 5, 2} {
				s.nodes(nodes, 50, zone(fmt.Sprint("zone-", z)))
			}
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
	s.nodes(2, 50, zone("zone-a"))
	s.nodes(1, 50, zone("zone-b"))
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
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		s.nodes(2, 50, zone(name))
	}
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
			app := fmt.Sprint("app-", i)
			s.must(s.client.AppsV1().Deployments(s.ns).Delete(s.ctx, app, metav1.DeleteOptions{}), "deleting Deployment "+app)
		}
		s.observe("svc=x", 0, isRunning)
		return o
	}
	stock, ours := deployed(corev1.DefaultSchedulerName), deployed(s.scheduler)
	s.counts(stock, 0, 4, 4, 4)
	s.counts(ours, 0, 4, 4, 4)
	s.beside(evennessCases[6], byZones(stock), byZones(ours))
}

// A bare pod whose constraint selects the pods of a Deployment goes where these are not.
func TestStockBarePodUnderASelector(t *testing.T) {
	s := begin(t, spread, byZone)
	full := s.nodes(1, 50, zone("zone-a"))[0]
	s.nodes(1, 50, zone("zone-b"))
	s.must(startStock(), "starting the stock scheduler")
	there := s.template("app", "", func(spec *corev1.PodSpec) {
		spec.NodeSelector = map[string]string{corev1.LabelHostname: full}
	})
	s.deployment("app", 4, there)
	s.settled("app", 4)
	for _, scheduler := range []string{corev1.DefaultSchedulerName, s.scheduler} {
		name := "bare-" + scheduler
		s.pod(name, s.template("app", "", constrained("app", corev1.LabelHostname), by(scheduler)))
		s.until("pod "+name, func() error {
			p, err := s.client.CoreV1().Pods(s.ns).Get(s.ctx, name, metav1.GetOptions{})
			switch {
			case err != nil:
				return err
			case p.Spec.NodeName == "":
				return errors.New("it has no node")
			case p.Spec.NodeName == full:
				return rig.Never(fmt.Errorf("%s has put it on %s, where the four others are", scheduler, full))
			}
			return nil
		})
		s.must(s.client.CoreV1().Pods(s.ns).Delete(s.ctx, name, metav1.DeleteOptions{}), "deleting pod "+name)
		s.settled("app", 4)
	}
}

// Pods without an owner or a constraint are spread over zones by both if a Service selects them.
func TestStockBarePodsBehindAService(t *testing.T) {
	s := begin(t, spread, byZone)
	for i, nodes := range []int{4, 2, 1} {
		s.nodes(nodes, 50, zone(fmt.Sprint("zone-", i)))
	}
	s.must(startStock(), "starting the stock scheduler")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "svc"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "app"}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	_, err := s.client.CoreV1().Services(s.ns).Create(s.ctx, service, metav1.CreateOptions{})
	s.must(err, "creating Service svc")
	placed := func(scheduler string) *rig.Observation {
		const pods = 9
		for i := range pods {
			s.pod(fmt.Sprintf("bare-%d", i), s.template("app", "", by(scheduler)))
		}
		o := s.settled("app", pods)
		s.Logf("%s:\n%s", scheduler, o.Draw())
		for i := range pods {
			name := fmt.Sprintf("bare-%d", i)
			s.must(s.client.CoreV1().Pods(s.ns).Delete(s.ctx, name, metav1.DeleteOptions{}), "deleting pod "+name)
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
		for _, size := range sizes {
			// One after the other, so that both see the pods in the same order.
			app := fmt.Sprint("app-", size)
			s.deploy(app, 20, "", asks(size), by(scheduler))
			s.settled(app, 20)
		}
		used := make(map[string]int)
		for _, size := range sizes {
			app := fmt.Sprint("app-", size)
			for node, pods := range s.settled(app, 20).OnNodes() {
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
			app := fmt.Sprint("app-", size)
			s.must(s.client.AppsV1().Deployments(s.ns).Delete(s.ctx, app, metav1.DeleteOptions{}), "deleting Deployment "+app)
			s.settled(app, 0)
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

// Pods of high priority take the place of others in a cluster that is full: as many as with the stock scheduler, and
// even by zone.
func TestStockPreemption(t *testing.T) {
	s := begin(t, spread, byZone)
	high := s.highPriority()
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		s.nodes(4, 3, zone(name))
	}
	s.must(startStock(), "starting the stock scheduler")
	const room, pods = 36, 12
	taken := func(scheduler string) (o *rig.Observation, victims int) {
		s.deploy("low", room, "", asks(1), by(scheduler))
		s.settled("low", room)
		s.deploy("high", pods, "", asks(1), by(scheduler), high, constrained("high", zoneLabel))
		o = s.settled("high", pods)
		low, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: "app=low"})
		s.must(err, "listing the pods of low priority")
		victims = room
		for i := range low.Items {
			if p := &low.Items[i]; p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
				victims--
			}
		}
		s.Logf("%s: %d victims\n%s", scheduler, victims, o.Draw())
		for _, app := range []string{"low", "high"} {
			s.must(s.client.AppsV1().Deployments(s.ns).Delete(s.ctx, app, metav1.DeleteOptions{}), "deleting Deployment "+app)
			s.settled(app, 0)
		}
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
