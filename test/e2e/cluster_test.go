// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/rig"
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
			ready[n.Name] = rig.TakesPods(&n) == nil
		}
		for _, name := range names {
			if !ready[name] {
				return fmt.Errorf("node %s is not ready or is tainted", name)
			}
		}
		return nil
	})
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
			if tainted := len(get[corev1.Node](s, name).Spec.Taints) > 0; tainted != closed {
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
