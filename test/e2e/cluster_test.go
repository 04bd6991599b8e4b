// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
)

// nodes makes n nodes with the labels and room for the given number of the
// story's pods each, waits until they take pods, and returns their names.
func (s *story) nodes(n, room int, labels map[string]string) []string {
	s.Helper()
	var names []string
	for range n {
		names = append(names, s.node(room, labels))
	}
	s.live(names...)
	return names
}

// zones makes so many nodes with the same room in zone-a, in zone-b and so on, and returns them by zone.
func (s *story) zones(room int, nodes ...int) (zones [][]string) {
	s.Helper()
	for i, n := range nodes {
		zones = append(zones, s.nodes(n, room, zone("zone-"+string(rune('a'+i)))))
	}
	return zones
}

// node makes one node and does not wait for it.
func (s *story) node(room int, labels map[string]string) string {
	s.Helper()
	return s.newNode(room, labels).Name
}

// newNode is node, and returns what the API server has made of it.
func (s *story) newNode(room int, labels map[string]string) *corev1.Node {
	s.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", s.name, s.serial())},
		Status:     corev1.NodeStatus{Capacity: roomFor(room), Allocatable: roomFor(room)},
	}
	node.Labels = map[string]string{corev1.LabelHostname: node.Name, storyLabel: s.name}
	maps.Copy(node.Labels, labels)
	made, err := s.client.CoreV1().Nodes().Create(s.ctx, node, metav1.CreateOptions{})
	s.must(err, "creating node "+node.Name)
	return made
}

// serial numbers the story's nodes.
func (s *story) serial() int {
	s.made++
	return s.made
}

// roomFor is a node's capacity for so many pods of podCPU.
func roomFor(pods int) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(pods)*podMilliCPU, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
}

// ownNodes are the nodes of the story.
func (s *story) ownNodes() []corev1.Node {
	s.Helper()
	list, err := s.client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{LabelSelector: storyLabel + "=" + s.name})
	s.must(err, "listing nodes")
	return list.Items
}

// live waits until the nodes are ready and nothing keeps pods away from them.
// Pods created before would be spread over whichever nodes came first.
func (s *story) live(names ...string) {
	s.Helper()
	s.until(fmt.Sprintf("%d nodes", len(names)), func() error {
		ready := map[string]bool{}
		for _, n := range s.ownNodes() {
			ready[n.Name] = takesPods(&n)
		}
		for _, name := range names {
			if !ready[name] {
				return fmt.Errorf("node %s is not ready or is tainted", name)
			}
		}
		return nil
	})
}

func takesPods(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0
		}
	}
	return false
}

// annotate gives a node an annotation.
func (s *story) annotate(node, key, value string) {
	s.Helper()
	s.alter(named[corev1.Node](s, node), `{"metadata":{"annotations":{%q:%q}}}`, key, value)
}

// lose deletes nodes, and then the pods that were on them, as a zone that goes does.
func (s *story) lose(nodes ...string) {
	s.Helper()
	lost := map[string]bool{}
	for _, name := range nodes {
		lost[name] = true
		s.delete(named[corev1.Node](s, name))
	}
	for _, p := range s.podsWith("", "") {
		if lost[p.Spec.NodeName] {
			s.must(client.IgnoreNotFound(world.objects.Delete(s.ctx, &p, client.GracePeriodSeconds(0))), "deleting pod "+p.Name)
		}
	}
}

// cordon closes nodes to new pods, or opens them again.
func (s *story) cordon(closed bool, nodes ...string) {
	s.Helper()
	for _, name := range nodes {
		s.alter(named[corev1.Node](s, name), `{"spec":{"unschedulable":%t}}`, closed)
	}
	// The taint of a cordoned node follows the field; new pods are to meet both or none.
	s.until("the taints of cordoned nodes", func() error {
		for _, name := range nodes {
			node, err := s.client.CoreV1().Nodes().Get(s.ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if tainted := len(node.Spec.Taints) > 0; tainted != closed {
				return errors.New("node " + name + " has not changed its taints yet")
			}
		}
		return nil
	})
}

func zone(name string) map[string]string { return map[string]string{zoneLabel: name} }

func place(zone, rack string) map[string]string {
	return map[string]string{zoneLabel: zone, rackLabel: rack}
}

// Every way to fail that devcluster knows is seen, in the pod as the API server has it
// or in an event, with a time, and none is seen in a pod that does well.
func TestFailuresAreSeen(t *testing.T) {
	s := begin(t, faults)
	s.nodes(1, 20, nil)
	refuses := s.nodes(1, 20, nil)[0]
	s.devcluster("fail", "--as=rejected", "--reason=OutOfcpu", refuses)
	s.Cleanup(func() { s.healLater(refuses) })
	for as, want := range map[string]string{
		"rejected": "UnexpectedAdmissionError", "error": "Error(1)", "crashloop": "Error(1)", "oom": "OOMKilled",
		"image": podoutcome.KindImagePull, "create": "CreateContainerError", "mount": "FailedMount", "sandbox": "FailedCreatePodSandBox",
	} {
		template := s.template(as, "")
		template.Annotations[failAnnotation] = as
		s.onGood(&template.Spec, refuses)
		s.pod(as, template)
		s.shows(as, want)
	}
	template := s.template("refused", "")
	template.Spec.NodeName = refuses
	s.pod("refused", template)
	s.shows("refused", "OutOfcpu")

	template = s.template("limited", "")
	template.Annotations[failAnnotation] = "oom"
	template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: roomFor(1)[corev1.ResourceMemory]}
	s.onGood(&template.Spec, refuses)
	s.pod("limited", template)
	well := s.template("well", "")
	s.onGood(&well.Spec, refuses)
	s.pod("well", well)
	becomes(s, "limited", "a crash loop", func(p *corev1.Pod) error {
		if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].LastTerminationState.Terminated == nil {
			return errors.New("pod limited has not been killed")
		}
		return nil
	})
	s.settled("well", 1)
	for _, name := range []string{"limited", "well"} {
		if got := s.failures(name); len(got) > 0 {
			s.Errorf("pod %s has %v", name, got)
		}
	}
}

// onGood keeps a pod off a node, by the node's name in its affinity.
func (s *story) onGood(spec *corev1.PodSpec, bad string) {
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{bad}}},
		}}},
	}}
}

// failures are those that a pod and the events about it show.
func (s *story) failures(name string) []podoutcome.Failure {
	s.Helper()
	pod := get[corev1.Pod](s, name)
	found := podoutcome.Failures(pod)
	events, err := s.client.CoreV1().Events(s.ns).List(s.ctx, metav1.ListOptions{})
	s.must(err, "listing events")
	for i := range events.Items {
		if f, ok := podoutcome.EventFailure(&events.Items[i]); ok && events.Items[i].InvolvedObject.UID == pod.UID {
			found = append(found, f)
		}
	}
	return found
}

// shows waits until a pod shows a failure of a kind, and no other.
func (s *story) shows(pod, kind string) {
	s.Helper()
	s.until(fmt.Sprintf("pod %s to show %s", pod, kind), func() error {
		found := s.failures(pod)
		if len(found) == 0 {
			return errors.New("it shows nothing")
		}
		if other := slices.IndexFunc(found, func(f podoutcome.Failure) bool { return f.Kind != kind || f.At.IsZero() }); other >= 0 {
			return fmt.Errorf("it shows %+v", found[other])
		}
		return nil
	})
	if age := time.Since(s.failures(pod)[0].At); age < -time.Second || age > timeout {
		s.Errorf("pod %s failed %v ago, it says", pod, age)
	}
}

// A pod that is deleted at once makes way for another of its name, and that one is left alone.
func TestNextPodOfTheSameName(t *testing.T) {
	s := begin(t, faults)
	s.needsFailures()
	nodes := s.nodes(1, 4, zone("zone-a"))
	template := s.template("app", "")
	template.Spec.NodeName = nodes[0]
	template.Spec.TerminationGracePeriodSeconds = nil
	runs := func(name string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: template.Labels}, Spec: *template.Spec.DeepCopy()}
		s.make(pod)
		becomes(s, name, "pod "+name, func(is *corev1.Pod) error {
			if is.UID != pod.UID {
				return fmt.Errorf("pod %s is another one", name)
			}
			return isReady(is)
		})
		return pod
	}
	for i := range 60 {
		name := fmt.Sprintf("app-%d", i%3)
		s.delete(runs(name), client.GracePeriodSeconds(0))
		s.delete(runs(name))
		s.goes(named[corev1.Pod](s, name))
	}
}
