// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// refusal waits until the pod is said to be unschedulable, in its condition and in an event, and returns what the two say.
func (s *story) refusal(name string) (condition, event string) {
	s.Helper()
	becomes(s, name, "pod "+name+" to be refused", func(pod *corev1.Pod) error {
		if pod.Spec.NodeName != "" {
			s.Fatalf("pod %s is on node %s, and was to be refused", name, pod.Spec.NodeName)
		}
		condition, event = unschedulable(pod), ""
		events, err := s.client.EventsV1().Events(s.ns).List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Name == name && e.Reason == "FailedScheduling" {
				event = e.Note
			}
		}
		return errorIf(condition == "" || event == "", "the condition says %q, the event %q", condition, event)
	})
	return condition, event
}

// refusedFor waits until the pod is refused and fails the story unless the messages give these reasons.
func (s *story) refusedFor(pod string, reasons ...string) {
	s.Helper()
	condition, event := s.refusal(pod)
	for _, reason := range reasons {
		if !strings.Contains(condition, reason) || !strings.Contains(event, reason) {
			s.Errorf("pod %s is not refused for %q: the condition says %q, the event %q", pod, reason, condition, event)
		}
	}
}

// refusedSoon makes a pod, and makes it anew until it is refused: the scheduler hears of pods and of what keeps them off nodes by different watches.
func (s *story) refusedSoon(name string, template corev1.PodTemplateSpec) {
	s.Helper()
	s.until("pod "+name+" to be refused", func() error {
		s.pod(name, template)
		node := s.tried(name)
		if node == "" {
			return nil
		}
		s.delete(named[corev1.Pod](s, name), client.GracePeriodSeconds(0))
		return fmt.Errorf("it is on node %s", node)
	})
}

// tried waits until a pod has a node, which is returned, or is unschedulable.
func (s *story) tried(name string) (node string) {
	s.Helper()
	becomes(s, name, "pod "+name+" to be tried", func(pod *corev1.Pod) error {
		node = pod.Spec.NodeName
		return errorIf(node == "" && unschedulable(pod) == "", "it is not")
	})
	return node
}

const reservedAnnotation = "espalier.dev/reserved-host-ports"

// onHostPort gives the pod's container a host port.
func onHostPort(port int32) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: port, Protocol: corev1.ProtocolTCP}}
	}
}

// reserve writes down the host ports that a node holds itself.
func (s *story) reserve(node, ports string) {
	s.Helper()
	s.annotate(node, reservedAnnotation, ports)
}

// onNode waits until the pod is on the node.
func (s *story) onNode(pod, node string) {
	s.Helper()
	becomes(s, pod, "pod "+pod+" to be on node "+node, func(p *corev1.Pod) error {
		return errorIf(p.Spec.NodeName != node, "it is on %q", p.Spec.NodeName)
	})
}

// A port that a node holds itself is not given to pods until the node gives it up, nor
// is any while nobody can say which it holds; pods without host ports do not care.
func TestPortHeldByTheNode(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	nodes := s.nodes(2, 20, zone("zone-a"))
	s.reserve(nodes[0], "22/tcp,28443/tcp")
	s.reserve(nodes[1], "28443")
	s.pod("plain", s.template("plain", ""))
	s.settled("plain", 1)

	s.pod("first", s.template("app", "", onHostPort(28443)))
	s.refusedFor("first", "1 node(s) reserved host port 28443/tcp", "1 node(s) had a malformed annotation "+reservedAnnotation)
	s.reserve(nodes[1], "28443/udp")
	s.onNode("first", nodes[1])

	s.pod("second", s.template("app", "", onHostPort(28443)))
	s.refusedFor("second", "1 node(s) reserved host port 28443/tcp", "1 node(s) didn't have free host port 28443/tcp")
	s.reserve(nodes[0], "22/tcp")
	s.onNode("second", nodes[0])

	s.pod("third", s.template("app", "", onHostPort(28443)))
	s.refusedFor("third", "2 node(s) didn't have free host port 28443/tcp")
	s.delete(named[corev1.Pod](s, "first"))
	s.onNode("third", nodes[1])
}

// highPriority makes a priority class for the story, and returns what gives it to a pod.
func (s *story) highPriority() func(*corev1.PodSpec) {
	s.Helper()
	s.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Value: 1000})
	return func(spec *corev1.PodSpec) { spec.PriorityClassName = s.name }
}

const limitsAnnotation = "espalier.dev/domain-limits"

// stuck waits until so many pods of the app run and so many others are refused for a reason, and returns where they are.
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

// At most one pod a node and two a rack: the rest waits and says why, and is placed as
// soon as a rack comes, or a pod goes. A node without a rack takes none.
func TestLimitsAtTwoLevels(t *testing.T) {
	s := begin(t, spread.core(), byRack)
	s.nodes(3, 20, place("zone-a", "rack-1"))
	s.nodes(3, 20, place("zone-a", "rack-2"))
	bare := s.nodes(1, 20, zone("zone-a"))[0]
	template := s.template("app", "")
	template.Annotations[limitsAnnotation] = corev1.LabelHostname + "=1," + rackLabel + "=2"
	s.deployment("app", 7, template)
	const full = "node(s) were in a domain with as many of the workload's pods as its domain limits allow"
	o := s.stuck("app", 4, 3, full)
	s.within(o, 1, 2)
	s.stuck("app", 4, 3, "1 node(s) didn't have a property that the pod's domain limits name")
	s.eachHas(o, 0, bare)

	s.nodes(1, 20, place("zone-a", "rack-3"))
	s.within(s.stuck("app", 5, 2, full), 1, 2)
	s.alter(named[corev1.Node](s, bare), `{"metadata":{"labels":{%q:"rack-3"}}}`, rackLabel)
	s.within(s.stuck("app", 6, 1, full), 1, 2)

	// One that goes makes room, for the one that waits or for its own replacement.
	placed := slices.IndexFunc(o.Pods, func(p corev1.Pod) bool { return p.Spec.NodeName != "" })
	s.delete(&o.Pods[placed])
	s.within(s.stuck("app", 6, 1, full), 1, 2)
	s.within(s.scaledTo("app", 6), 1, 2)
}
