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
	s.deploy("app", 60, "")
	s.eachHas(s.settled("app", 60), 3, nodes...)
	bad := nodes[0]
	if *wholeFlag {
		s.must(startStock(), "starting the stock scheduler")
		s.deploy("stock", 60, "", by(corev1.DefaultSchedulerName))
		s.settled("stock", 60)
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
