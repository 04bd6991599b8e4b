// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

const (
	limitsAnnotation = "espalier.dev/domain-limits"
	onePerNode       = corev1.LabelHostname + "=1"
)

// limited creates a Deployment under domain limits. It starts new pods before it stops old ones.
func (s *story) limited(app string, replicas int32, limits string) {
	s.Helper()
	template := s.template(app, "")
	template.Annotations[limitsAnnotation] = limits
	_, err := s.client.AppsV1().Deployments(s.ns).Create(s.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas), Selector: selects(app), Template: template,
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxSurge: new(intstr.FromInt32(2)), MaxUnavailable: new(intstr.FromInt32(0)),
				},
			},
		},
	}, metav1.CreateOptions{})
	s.must(err, "creating Deployment "+app)
}

// stuck waits until so many pods of the app run and so many others are refused for a
// reason, and returns where they are.
func (s *story) stuck(app string, running, refused int, reason string) *rig.Observation {
	s.Helper()
	return s.seen(fmt.Sprintf("%d pods of %s to run and %d to be refused", running, app, refused), "app="+app, func(o *rig.Observation) error {
		run, wait := 0, 0
		for i := range o.Pods {
			switch pod := &o.Pods[i]; {
			case pod.Status.Phase == corev1.PodRunning:
				run++
			case pod.Spec.NodeName == "" && strings.Contains(unschedulable(pod), reason):
				wait++
			}
		}
		if run != running || wait != refused || o.Leaving > 0 || len(o.Pods) != running+refused {
			return fmt.Errorf("of %d pods %d run, %d are refused and %d are leaving:\n%s", len(o.Pods), run, wait, o.Leaving, s.pods(s.ctx))
		}
		return nil
	})
}

// unschedulable is what a pod's condition says of why it has no node.
func unschedulable(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return c.Message
		}
	}
	return ""
}

// within fails the story if a domain of a level, or a node, has more pods than allowed.
func (s *story) within(o *rig.Observation, perNode, perDomain int) {
	s.Helper()
	sums := map[string]int{}
	for _, n := range o.Nodes {
		sums[n.Values[0]] += n.Count
		if n.Count > perNode {
			s.Errorf("node %s has %d pods, and the limit is %d\n%s", n.Name, n.Count, perNode, o.Draw())
		}
	}
	for value, n := range sums {
		if n > perDomain {
			s.Errorf("%s %q has %d pods, and the limit is %d\n%s", s.levels[0].Name, value, n, perDomain, o.Draw())
		}
	}
}

// putInRack labels a node.
func (s *story) putInRack(node, rack string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, rackLabel, rack)
	_, err := s.client.CoreV1().Nodes().Patch(s.ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	s.must(err, "labelling node "+node)
}

// At most one pod a node and two a rack: the rest waits and says why, and is placed as
// soon as a rack comes, or a pod goes. A node without a rack takes none.
func TestLimitsAtTwoLevels(t *testing.T) {
	s := begin(t, spread.core(), byRack)
	s.nodes(3, 20, place("zone-a", "rack-1"))
	s.nodes(3, 20, place("zone-a", "rack-2"))
	bare := s.nodes(1, 20, zone("zone-a"))[0]
	s.limited("app", 7, onePerNode+","+rackLabel+"=2")
	const full = "node(s) were in a domain with as many of the workload's pods as its domain limits allow"
	o := s.stuck("app", 4, 3, full)
	s.within(o, 1, 2)
	s.stuck("app", 4, 3, "1 node(s) didn't have a property that the pod's domain limits name")
	if n := o.OnNodes()[bare]; n != 0 {
		s.Errorf("the node without a rack has %d pods", n)
	}

	s.nodes(1, 20, place("zone-a", "rack-3"))
	s.within(s.stuck("app", 5, 2, full), 1, 2)
	s.putInRack(bare, "rack-3")
	s.within(s.stuck("app", 6, 1, full), 1, 2)

	// One that goes makes room, for the one that waits or for its own replacement.
	placed := slices.IndexFunc(o.Pods, func(p corev1.Pod) bool { return p.Spec.NodeName != "" })
	leaver := o.Pods[placed].Name
	s.must(s.client.CoreV1().Pods(s.ns).Delete(s.ctx, leaver, metav1.DeleteOptions{}), "deleting pod "+leaver)
	s.within(s.stuck("app", 6, 1, full), 1, 2)
	s.scale("app", 6)
	s.within(s.settled("app", 6), 1, 2)
}
