// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

// disconnects makes a policy for the pods of an app on nodes that do not answer.
func (s *story) disconnects(app string, d placementv1alpha1.Disconnect) {
	s.Helper()
	s.governs(app, app, placementv1alpha1.PlacementPolicySpec{Disconnect: &d})
}

// deletedAfter has a pod tolerate for so long that its node does not answer.
func deletedAfter(seconds int64) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
}

// silenced stops nodes, and returns when Kubernetes has seen that: their pods are to go, and no new ones are to come. One taint says the one and
// another the other, and pods tolerate the first for five minutes. The node lifecycle controller writes them one after the other.
func (s *story) silenced(nodes ...string) {
	s.Helper()
	s.devcluster(append([]string{"stop-node"}, nodes...)...)
	s.until(fmt.Sprintf("nodes %q to be unreachable", nodes), func() error {
		for _, node := range nodes {
			n := get[corev1.Node](s, node)
			closed := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
				return t.Key == corev1.TaintNodeUnreachable && t.Effect == corev1.TaintEffectNoSchedule
			})
			if clusterview.Silent(n) == nil || !closed {
				return fmt.Errorf("the taints of %s are %v", node, n.Spec.Taints)
			}
		}
		return nil
	})
}

// closed keeps new pods off nodes that are to be silent. The node lifecycle controller finds one silent after the other, and what is replaced of the first
// must not come to the next.
func (s *story) closed(nodes ...string) {
	s.Helper()
	for _, node := range nodes {
		s.taint(node, `[{"key":"e2e.espalier.dev/closed","effect":"NoSchedule"}]`)
	}
}

// podsOn are the pods of an app on some nodes, by name, also those that nobody owns for a while.
func (s *story) podsOn(app string, nodes ...string) map[string]corev1.Pod {
	s.Helper()
	pods := make(map[string]corev1.Pod)
	for _, p := range s.podsOf(app) {
		if slices.Contains(nodes, p.Spec.NodeName) {
			pods[p.Name] = p
		}
	}
	return pods
}

// awaiting waits for so many Moves that wait for a node, and for so many ready pods of the app.
func (s *story) awaiting(limit time.Duration, app string, moves, ready int) {
	s.Helper()
	s.untilWithin(limit, fmt.Sprintf("%d Moves to wait, and %d pods to be ready", moves, ready), func() error {
		n, others := 0, []string(nil)
		for _, m := range s.moves() {
			others = append(others, fmt.Sprintf("%s: %s", m.Status.Phase, m.Status.Message))
			if m.Status.Phase == placementv1alpha1.MoveWaiting {
				n++
			}
		}
		well := 0
		for _, p := range s.podsOf(app) {
			if rig.IsReady(&p) {
				well++
			}
		}
		return errorIf(n != moves || well != ready, "%d Moves wait, of %q, and %d pods are ready", n, others, well)
	})
}

// returned fails the story unless pods are the same ones, were not restarted, and tolerate what they did before.
func (s *story) returned(before, after map[string]corev1.Pod, seconds int64) {
	s.Helper()
	s.until("pods to be as they were", func() error {
		if len(after) != len(before) {
			return rig.Never(fmt.Errorf("there are %d pods, and were %d", len(after), len(before)))
		}
		for name, was := range before {
			is := get[corev1.Pod](s, name)
			switch {
			case is.UID != was.UID || !is.Status.StartTime.Equal(was.Status.StartTime):
				return rig.Never(fmt.Errorf("pod %s is another one", name))
			case is.Status.ContainerStatuses[0].RestartCount != was.Status.ContainerStatuses[0].RestartCount:
				return rig.Never(fmt.Errorf("pod %s was restarted", name))
			}
			for _, t := range is.Spec.Tolerations {
				if t.Key == corev1.TaintNodeUnreachable && (t.TolerationSeconds == nil || *t.TolerationSeconds != seconds) {
					return fmt.Errorf("pod %s has the toleration %+v", name, t)
				}
			}
			for key := range is.Annotations {
				if strings.HasPrefix(key, "espalier.dev/unreachable") || strings.HasSuffix(key, "-move") {
					return fmt.Errorf("pod %s has the annotation %s", name, key)
				}
			}
		}
		return nil
	})
}

// A node that is silent for less than pods wait until they are replaced has none replaced, however often.
func TestDisconnectOfAMoment(t *testing.T) {
	s := begin(t, faults, byZone)
	s.needsFailures()
	nodes := s.nodes(3, 20, zone("zone-a"))
	s.disconnects("app", placementv1alpha1.Disconnect{ReplaceAfterSeconds: new(int32(300))})
	s.eachHas(s.deployed("app", 3, ""), 1, nodes...)
	before := s.podsOn("app", nodes[0])
	for range times(10) {
		s.silenced(nodes[0])
		s.until("the pod to be kept", func() error {
			for name, p := range s.podsOn("app", nodes[0]) {
				for _, t := range p.Spec.Tolerations {
					if t.Key == corev1.TaintNodeUnreachable && t.TolerationSeconds == nil {
						return nil
					}
				}
				return fmt.Errorf("pod %s has the tolerations %v", name, p.Spec.Tolerations)
			}
			return nil
		})
		time.Sleep(lasting(20*time.Second, 0))
		s.devcluster("start-node", nodes[0])
		s.returned(before, s.podsOn("app", nodes[0]), 300)
	}
	s.still(0)
}

// What is lost is deleted by Kubernetes, and as many pods are ready as are wanted.
func TestDisconnectOfALostPod(t *testing.T) {
	s := begin(t, faults.core(), byZone)
	s.needsFailures()
	nodes := s.nodes(3, 20, zone("zone-a"))
	s.disconnects("app", placementv1alpha1.Disconnect{ReplaceAfterSeconds: new(int32(1)), LostAfterSeconds: 15})
	s.eachHas(s.deployed("app", 3, ""), 1, nodes...)
	s.silenced(nodes[0])
	s.moved(1, placementv1alpha1.MoveDone)
	s.awaiting(timeout, "app", 0, 3)
	for name, p := range s.podsOn("app", nodes[0]) {
		if p.DeletionTimestamp == nil {
			t.Errorf("pod %s is not deleted", name)
		}
	}
	s.devcluster("start-node", nodes[0])
	s.eachHas(s.settled("app", 3), 0, nodes[0])
}

// A pod of a StatefulSet is kept, and none takes its place: it would have the same name. An event says so.
func TestDisconnectOfAStatefulSet(t *testing.T) {
	s := begin(t, faults.core(), byZone)
	s.needsFailures()
	nodes := s.nodes(3, 20, zone("zone-a"))
	s.disconnects("db", placementv1alpha1.Disconnect{ReplaceAfterSeconds: new(int32(1))})
	s.statefulSet("db", 3, s.template("db", "", deletedAfter(12)))
	s.eachHas(s.settled("db", 3), 1, nodes...)
	before := s.podsOn("db", nodes[0])
	s.pod("beside", s.template("beside", "", deletedAfter(12), onlyOn(nodes[0]))) // no policy keeps it
	s.settled("beside", 1)
	s.silenced(nodes[0])
	s.until("an event to say that the pod is kept", func() error {
		events, err := s.client.CoreV1().Events(s.ns).List(s.ctx, metav1.ListOptions{FieldSelector: "reason=PodKept"})
		if err == nil && len(events.Items) != 1 {
			err = fmt.Errorf("there are %d", len(events.Items))
		}
		return err
	})
	s.until("the other pod to be deleted, which tolerates it for as long", func() error { return leaving(s.podsOn("beside", nodes[0]), true) })
	s.devcluster("start-node", nodes[0])
	s.returned(before, s.podsOn("db", nodes[0]), 12)
	s.still(0)
	s.settled("db", 3)
}

// Three of nine nodes fall silent and are back at once: each pod has its own replacement, and each of these goes.
func TestDisconnectOfSeveralNodes(t *testing.T) {
	s := begin(t, faults, byZone)
	s.needsFailures()
	nodes := s.nodes(9, 20, zone("zone-a"))
	s.disconnects("app", placementv1alpha1.Disconnect{ReplaceAfterSeconds: new(int32(0)), Keep: placementv1alpha1.KeepOriginal})
	s.eachHas(s.deployed("app", 18, ""), 2, nodes...)
	before := s.podsOn("app", nodes[:3]...)
	s.closed(nodes[:3]...)
	s.devcluster(append([]string{"stop-node"}, nodes[:3]...)...)
	s.awaiting(timeout, "app", 6, 18)
	stop := s.neverBelow("app", 18)
	s.devcluster(append([]string{"start-node"}, nodes[:3]...)...)
	s.moved(6, placementv1alpha1.MoveUndone)
	stop()
	s.eachHas(s.settled("app", 18), 2, nodes...)
	s.returned(before, s.podsOn("app", nodes[:3]...), 300)
}

// Where 60 % of a zone do not answer the node lifecycle controller taints no more nodes. Pods are moved where it has, and nowhere else.
func TestDisconnectOfMostOfAZone(t *testing.T) {
	s := begin(t, faults, byZone)
	s.needsFailures()
	nodes := s.nodes(5, 20, zone("zone-"+s.name))
	s.disconnects("app", placementv1alpha1.Disconnect{ReplaceAfterSeconds: new(int32(0))})
	s.eachHas(s.deployed("app", 10, ""), 2, nodes...)
	s.closed(nodes[:3]...)
	for _, n := range nodes[:3] {
		s.devcluster("stop-node", n)
	}
	tainted := make(map[string]bool)
	s.until("three nodes not to be ready", func() error {
		for _, name := range nodes[:3] {
			if !clusterview.Unready(get[corev1.Node](s, name)) {
				return fmt.Errorf("node %s is ready", name)
			}
		}
		return nil
	})
	s.looked(3, []string{"disconnect"}, func() error { return nil })
	time.Sleep(lasting(5*time.Minute, 0))
	for _, name := range nodes[:3] {
		n := get[corev1.Node](s, name)
		tainted[name] = clusterview.Silent(n) != nil
	}
	t.Logf("of the nodes that do not answer these are tainted: %v", tainted) // how many depends on which of them were seen first
	s.until("the pods of tainted nodes to be moved, and no others", func() error {
		moved := make(map[string]bool)
		for _, m := range s.moves() {
			moved[m.Spec.Pod.Name] = true
		}
		for _, node := range nodes[:3] {
			for name, p := range s.podsOn("app", node) {
				if moved[name] != tainted[node] || (p.Annotations[clusterview.UnreachableSecondsAnnotation] != "") != tainted[node] {
					err := fmt.Errorf("pod %s is moved: %t, and its node tainted: %t; its annotations are %v", name, moved[name], tainted[node], p.Annotations)
					if !tainted[node] {
						return rig.Never(err)
					}
					return err
				}
			}
		}
		return nil
	})
	s.devcluster(append([]string{"start-node"}, nodes[:3]...)...)
	s.settled("app", 10)
}

// Five of 50 nodes are silent for three minutes. Pods that a policy keeps go on as if nothing had been. Of the stock scheduler's, those that
// tolerate it for a minute are killed, and those that tolerate it for five are not.
func TestPartitionOfThreeMinutes(t *testing.T) {
	begin(t, faults, byZone).partition(3*time.Minute, map[string]stockApp{
		"stock-60":  {tolerates: lasting(time.Minute, 5*time.Second), killed: true},
		"stock-300": {tolerates: 5 * time.Minute},
	})
}

// They are silent for ten minutes: all of the stock scheduler's pods are killed, and none that a policy keeps.
func TestPartitionOfTenMinutes(t *testing.T) {
	begin(t, faults, byZone).partition(10*time.Minute, map[string]stockApp{
		"stock-60":  {tolerates: lasting(time.Minute, 5*time.Second), killed: true},
		"stock-300": {tolerates: lasting(5*time.Minute, 12*time.Second), killed: true},
	})
}

// stockApp is a Deployment of the stock scheduler, without a policy.
type stockApp struct {
	// tolerates is for how long its pods tolerate that their node does not answer.
	tolerates time.Duration
	// killed says that they are killed for it.
	killed bool
}

// silentZone is a zone with so many nodes, of which so many fall silent.
type silentZone struct{ nodes, silent int }

// partition has nodes fall silent, for as long as it is said, or, told in short, until all has happened that is to. Then they come back.
func (s *story) partition(lasts time.Duration, stock map[string]stockApp) {
	s.Helper()
	s.needsFailures()
	s.must(startStock(), "starting the stock scheduler")
	var gone []string
	for i, z := range sized([]silentZone{{20, 2}, {20, 2}, {10, 1}}, []silentZone{{4, 1}, {4, 1}, {2, 0}}) {
		gone = append(gone, s.nodes(z.nodes, 50, zone(fmt.Sprint("zone-", i)))[:z.silent]...)
	}
	s.disconnects("app", placementv1alpha1.Disconnect{
		ReplaceAfterSeconds: new(int32(lasting(30*time.Second, 2*time.Second).Seconds())), LostAfterSeconds: 3600, Keep: placementv1alpha1.KeepOriginal,
	})
	pods := map[string]int32{"app": sized[int32](100, 20)}
	s.deploy("app", pods["app"], "")
	for app, a := range stock {
		pods[app] = sized[int32](50, 20)
		s.deploy(app, pods[app], "", by(corev1.DefaultSchedulerName), deletedAfter(int64(a.tolerates.Seconds())))
	}
	before := make(map[string]map[string]corev1.Pod)
	for app, n := range pods {
		s.settled(app, int(n))
		before[app] = s.podsOn(app, gone...)
		s.Logf("%s has %d pods on the nodes that fall silent", app, len(before[app]))
	}

	s.closed(gone...)
	begun := time.Now()
	s.silenced(gone...)
	// The Moves of one Deployment come one after the other, and all are to wait before the nodes are back.
	s.awaiting(max(timeout, lasting(lasts, 0)), "app", len(before["app"]), int(pods["app"]))
	s.Logf("all of the other pods are ready %s after the nodes were last heard of", time.Since(begun).Round(time.Second))
	for app, a := range stock {
		if a.killed {
			s.untilWithin(10*time.Minute, "the pods of "+app+" to be deleted", func() error { return leaving(s.podsOn(app, gone...), true) })
		}
	}
	time.Sleep(lasting(time.Until(begun.Add(lasts)), 0))
	for app := range pods {
		if !stock[app].killed {
			s.must(leaving(s.podsOn(app, gone...), false), "looking at the pods of "+app)
		}
	}
	s.Logf("the nodes have been silent for %s", time.Since(begun).Round(time.Second))

	s.devcluster(append([]string{"start-node"}, gone...)...)
	s.moved(len(before["app"]), placementv1alpha1.MoveUndone)
	for _, node := range gone {
		s.taint(node, "[]")
	}
	s.even(s.settled("app", int(pods["app"])))
	s.returned(before["app"], s.podsOn("app", gone...), 300)
	s.wroteNoReplicas("app")
	for app, a := range stock {
		s.settled(app, int(pods[app]))
		kept := s.podsOn(app, gone...)
		maps.DeleteFunc(kept, func(name string, p corev1.Pod) bool { return before[app][name].UID != p.UID })
		s.Logf("%s: %d of %d pods are killed", app, len(before[app])-len(kept), len(before[app]))
		if a.killed && len(kept) > 0 || !a.killed && len(kept) < len(before[app]) {
			s.Errorf("%s: %d of %d pods are left", app, len(kept), len(before[app]))
		}
	}
	s.wrote()
}

// leaving returns an error unless all pods are being deleted, or none.
func leaving(pods map[string]corev1.Pod, want bool) error {
	for name, p := range pods {
		if is := p.DeletionTimestamp != nil; is != want {
			return fmt.Errorf("pod %s is being deleted: %t", name, is)
		}
	}
	return nil
}
