// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// A node that refuses every pod always looks the emptiest. The stock scheduler has fed
// one of twenty thousands of pods in a minute, and the Deployment was never ready.
func TestOneNodeRejects(t *testing.T) {
	s := begin(t, faults.core())
	_, bad := s.bad("rejected", 20, 10)
	lost := s.losses()
	s.deployed("app", 60, "")
	s.lostAtMost(lost, 6, bad)
	s.marked(lost, bad, "Deployment", "app", 60)
	s.lostAtMost(lost, 6, bad)
}

// The same of a whole zone: its nodes add up, or each of them would be tried until it is marked.
func TestOneZoneRejects(t *testing.T) {
	s := begin(t, faults, byZone)
	bad := s.zones(20, 4, 4, 4)[0]
	s.fail("rejected", bad...)
	lost := s.losses()
	o := s.deployed("app", 30, "spread="+zoneLabel)
	s.lostAtMost(lost, 12, bad...)
	s.exactly(o, 0, map[string]int{"zone-a": 0, "zone-b": 15, "zone-c": 15})
}

// Pods that hang on a node are not replaced, so nothing but the status of a container,
// or an event, says that there is something wrong. Pods that come later stay away.
func TestPodsHangOnANode(t *testing.T) {
	for as, l := range map[string]label{"image": faults.core(), "create": faults, "mount": faults, "sandbox": faults} {
		t.Run(as, func(t *testing.T) {
			s := begin(t, l)
			_, bad := s.bad(as, 4, 30)
			s.deploy("app", 4, "")
			hangs := s.hanging(bad)
			if hangs != 1 {
				s.Fatalf("%d pods hang on %s, want one of four", hangs, bad)
			}
			// One after the other, as it comes to look the best again: when the scheduler has heard of the last one, which takes
			// a few more pods on a busy machine.
			n := 4
			for s.told(nodeFaulty, "Node", bad) == 0 {
				if n += 4; n > 100 {
					s.Fatalf("the node is not faulty, and there are %d pods", n)
				}
				s.scale("app", n)
				s.placed("app", n)
			}
			if hangs = s.hanging(bad); hangs > 6 {
				s.Errorf("%d pods hang on %s, want at most 6", hangs, bad)
			}
			s.Logf("%d pods hang", hangs)
			s.heal(bad)
			s.settled("app", n)
		})
	}
}

// placed waits until n pods of the app have nodes, and those that do not hang run.
func (s *story) placed(app string, n int) {
	s.Helper()
	s.observe("app="+app, n, func(p *corev1.Pod) error {
		return errorIf(p.Status.Phase != corev1.PodRunning && p.Status.ContainerStatuses == nil, "pod %s on node %q is %s", p.Name, p.Spec.NodeName, p.Status.Phase)
	})
}

// hanging waits until a node has pods and all of them hang, and returns how many.
func (s *story) hanging(node string) int {
	s.Helper()
	n := 0
	s.until("pods to hang on "+node, func() error {
		pods := s.podsWith("", node)
		n = len(pods)
		for _, p := range pods {
			if p.Status.Phase != corev1.PodPending || p.Status.ContainerStatuses == nil {
				return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
			}
		}
		return errorIf(n == 0, "there is none")
	})
	return n
}

// What becomes of a mark: it fades, it is not of the next revision, and it outlives the scheduler that made it.

// A node is repaired. Its mark fades with the window; then one pod is tried on it, and
// when that has proven itself the node is like any other.
func TestNodeIsRepaired(t *testing.T) {
	s := begin(t, faults)
	// As few failures and as long a window as it takes for them to come together on a busy machine.
	const threshold, window = 3, 15 * time.Second
	s.ownScheduler("repaired-"+s.name, s.ownFaults(map[string]any{"threshold": threshold, "windowSeconds": int64(window.Seconds()), "provenAfterSeconds": int64(1)}))
	good, bad := s.bad("rejected", 4, 40)
	lost := s.losses()
	lost.threshold, lost.window = threshold, window
	s.eachHas(s.deployed("app", 24, ""), 8, good...)
	s.marked(lost, bad, "Deployment", "app", 24)
	s.lostAtMost(lost, 8, bad) // six are its share of the first batch
	s.heal(bad)
	s.tells(nodeCleared, "Node", bad)
	s.tells(nodeCleared, "Deployment", "app")

	o := s.scaledTo("app", 27)
	if n := o.OnNodes()[bad]; n == 0 {
		s.Errorf("no pod was tried on %s after it was repaired: %v", bad, o.OnNodes())
	}
	s.until("the pod on "+bad+" to prove itself", func() error {
		// Every pod that is put there now shows it; a node on trial takes none.
		o = s.settled("app", s.replicas("app"))
		if n := o.OnNodes()[bad]; n < 4 {
			s.scale("app", s.replicas("app")+1)
			return fmt.Errorf("%s has %d pods", bad, n)
		}
		return nil
	})
	// How many came to the others meanwhile is a matter of how fast the machine is.
	before, each := lost.total(), 10
	for _, n := range o.OnNodes() {
		each = max(each, n)
	}
	s.scale("app", 4*each)
	s.eachHas(s.settled("app", 4*each), each, append(good, bad)...)
	if n := lost.total() - before; n != 0 {
		s.Errorf("%d more pods were lost", n)
	}
}

// replicas is how many pods a Deployment is to have.
func (s *story) replicas(app string) int {
	s.Helper()
	d := get[appsv1.Deployment](s, app)
	return int(*d.Spec.Replicas)
}

// The scheduler dies after the mark. Its successor knows what it knew, though nothing of the failed pods is left in the API: neither those
// of a Deployment nor those of a StatefulSet, whose controller deletes a pod that failed to make it anew.
func TestSuccessorKnowsTheBadNode(t *testing.T) {
	s := begin(t, faults.core())
	flag := s.ownFaults(map[string]any{})
	first := s.ownScheduler("first-"+s.name, flag)
	good, bad := s.bad("rejected", 4, 60)
	lost := s.losses()
	s.deploy("app", 24, "")
	s.statefulSet("db", 12, s.template("db", ""))
	s.eachHas(s.settled("app", 24), 8, good...)
	s.eachHas(s.settled("db", 12), 4, good...)
	s.marked(lost, bad, "Deployment", "app", 24)
	s.marked(lost, bad, "StatefulSet", "db", 12)
	s.until("the record of both workloads", func() error {
		list, err := s.client.CoreV1().ConfigMaps(s.ns).List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, c := range list.Items {
			if text := fmt.Sprint(c.Data); strings.Contains(text, bad) && strings.Contains(text, "Deployment.apps/app") && strings.Contains(text, "StatefulSet.apps/db") {
				return nil
			}
		}
		return errors.New("it is not there")
	})
	first.Kill()
	before := lost.total()
	s.forgetFailed()

	s.ownScheduler("second-"+s.name, flag)
	s.scale("app", 48)
	s.scaleStatefulSet("db", 24)
	s.eachHas(s.settled("app", 48), 16, good...)
	s.eachHas(s.settled("db", 24), 8, good...)
	if n := lost.total() - before; n != 0 {
		s.Errorf("the successor lost %d pods on %s, which its predecessor avoided", n, bad)
	}
}

// forgetFailed deletes the failed pods, as a cleaner or the garbage collector does.
func (s *story) forgetFailed() {
	s.Helper()
	failed := metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodFailed)}
	s.must(s.client.CoreV1().Pods(s.ns).DeleteCollection(s.ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, failed), "deleting failed pods")
	s.until("the failed pods to be gone", func() error {
		list, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, failed)
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
}

// restartLabel is on the namespaces of the stories whose pods are replaced where they keep failing.
const restartLabel = "e2e.espalier.dev/restart"

// restartFlags have the controller look at those namespaces.
var restartFlags = []string{"--restart-elsewhere=Enabled", "--restart-namespace-selector=" + restartLabel, "--restart-delay=2s", "--restart-delay-function=Constant"}

// One of twenty nodes begins to fail what runs there. Its pods are replaced, and no others. Those of the stock scheduler fail there until
// somebody does something about it.
func TestRestartElsewhere(t *testing.T) {
	s := begin(t, faults.core(), byZone)
	s.needsFailures()
	s.label(restartLabel)
	nodes := s.nodes(20, 20, zone("zone-a"))
	s.eachHas(s.deployed("app", 60, ""), 3, nodes...)
	bad := nodes[0]
	if *wholeFlag {
		s.must(startStock(), "starting the stock scheduler")
		s.deployed("stock", 60, "", by(corev1.DefaultSchedulerName))
	}
	stock := s.podsOn("stock", bad)
	s.devcluster("fail", "--as=crashloop", "--running", bad)
	s.Cleanup(func() { s.healLater(bad) })
	s.moved(3, placementv1alpha1.MoveDone)
	s.eachHas(s.observe("app=app", 60, isReady), 0, bad)
	s.still(3)
	for name, was := range stock {
		if is, there := s.podsOn("stock", bad)[name]; !there || is.UID != was.UID || isReady(&is) == nil {
			t.Errorf("pod %s of the stock scheduler is not on %s any more, or ready: this told nothing", name, bad)
		}
	}
	s.Logf("%d pods of the stock scheduler fail on %s", len(stock), bad)
}

// An image that crashes everywhere is the fault of no node: no pod is replaced.
func TestNoRestartElsewhereOfABadImage(t *testing.T) {
	s := begin(t, faults, byZone)
	s.needsFailures()
	s.label(restartLabel)
	s.nodes(6, 20, zone("zone-a"))
	template := s.template("app", "")
	template.Annotations[failAnnotation] = "crashloop"
	s.deployment("app", 12, template)
	s.observe("app=app", 12, func(p *corev1.Pod) error {
		return errorIf(len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Waiting == nil, "pod %s does not fail", p.Name)
	})
	s.still(0)
}

// isReady is what pods are that do their work.
func isReady(p *corev1.Pod) error {
	since := readySince(p)
	return errorIf(since.IsZero(), "pod %s on node %q is not ready", p.Name, p.Spec.NodeName)
}

// readySince is when the pod became ready, and zero if it is not.
func readySince(p *corev1.Pod) (since metav1.Time) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			since = c.LastTransitionTime
		}
	}
	return since
}

// All pods of a StatefulSet, and of a Deployment that makes none before one is gone, are on a node that is cordoned. One after the other goes, and is ready
// elsewhere before the next one does.
func TestDrainEvictsFirst(t *testing.T) {
	s := begin(t, moves.core(), byZone)
	node := s.nodes(1, 20, zone("zone-a"))[0]
	s.statefulSet("db", 3, s.template("db", ""))
	s.deploy("once", 3, "")
	s.patch("once", `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`)
	var stops []func()
	for _, app := range []string{"db", "once"} {
		s.settled(app, 3)
		s.keeps(app, 2)
		s.asks(app, placementv1alpha1.Moves{Drained: placementv1alpha1.DrainedAll})
		stops = append(stops, s.neverOutside(app, 2, 3))
	}
	s.available("once", "the Deployment to be at rest")
	s.nodes(2, 20, zone("zone-b"))
	s.cordon(true, node)
	s.movedExactly(6)
	for i, app := range []string{"db", "once"} {
		s.eachHas(s.observe("app="+app, 3, isReady), 0, node)
		stops[i]()
	}
}

// One of ten nodes begins to fail what runs there. The pods of a StatefulSet go to others, and no pods of other nodes do.
func TestRestartElsewhereOfAStatefulSet(t *testing.T) {
	s := begin(t, faults, byZone)
	s.needsFailures()
	s.label(restartLabel)
	nodes := s.nodes(10, 20, zone("zone-a"))
	s.statefulSet("db", 30, s.template("db", ""))
	s.eachHas(s.settled("db", 30), 3, nodes...)
	s.devcluster("fail", "--as=crashloop", "--running", nodes[0])
	s.Cleanup(func() { s.healLater(nodes[0]) })
	s.moved(3, placementv1alpha1.MoveDone)
	s.eachHas(s.observe("app=db", 30, isReady), 0, nodes[0])
	s.still(3)
}
