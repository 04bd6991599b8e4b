// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

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
	o := s.observe("app=app", 60, isReady)
	if n := o.OnNodes()[bad]; n != 0 {
		t.Errorf("%d pods are on %s", n, bad)
	}
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
		if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Waiting == nil {
			return fmt.Errorf("pod %s does not fail", p.Name)
		}
		return nil
	})
	s.still(0)
}

// isReady is what pods are that do their work.
func isReady(p *corev1.Pod) error {
	if since := readySince(p); since.IsZero() {
		return fmt.Errorf("pod %s on node %q is not ready", p.Name, p.Spec.NodeName)
	}
	return nil
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
		if n := s.observe("app="+app, 3, isReady).OnNodes()[node]; n != 0 {
			t.Errorf("%d pods of %s are on %s", n, app, node)
		}
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
	o := s.observe("app=db", 30, isReady)
	if n := o.OnNodes()[nodes[0]]; n != 0 {
		t.Errorf("%d pods are on %s", n, nodes[0])
	}
	s.still(3)
}
