// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// The two schedulers race so often at least, and go on until there has been a collision:
// a race may have none, and then it has told nothing. Ten without one are no accident.
const rounds, roundsAtMost = 3, 10

// Two schedulers fill the same nodes to the last place at the same time and promise
// some places twice. The kubelet rejects what comes second, and every such pod is
// replaced until all have a place: a node that has rejected pods is not shunned so
// that the last place stays empty.
func TestPodsRejectedWhileTheDefaultSchedulerFillsTheNodes(t *testing.T) {
	s := begin(t)
	const places = 10 // on the node with the least room
	unit, total := s.room(places)
	asks := func(scheduler string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			spec.SchedulerName = scheduler
			spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(unit, resource.DecimalSI)
		}
	}
	rejected := 0
	for round := 1; round <= rounds || rejected == 0; round++ {
		if round > roundsAtMost {
			s.Fatalf("no pod was rejected in %d races: this told nothing", roundsAtMost)
		}
		ours, theirs := fmt.Sprintf("ours-%d", round), fmt.Sprintf("theirs-%d", round)
		s.deploy(ours, total/2, asks(rig.SchedulerName))
		s.deploy(theirs, total-total/2, asks(corev1.DefaultSchedulerName))
		s.settled(ours, total/2)
		s.settled(theirs, total-total/2)
		rejected += s.rejected(ours) + s.rejected(theirs)
		s.Logf("round %d: of ours %d were rejected, of the default scheduler's %d", round, s.rejected(ours), s.rejected(theirs))
		s.scale(ours, 0)
		s.scale(theirs, 0)
		s.settled(ours, 0)
		s.settled(theirs, 0)
	}
}

// room is what a pod must ask for, in thousandths of a CPU, so that the fullest node
// has so many places, and how many places all nodes have then.
func (s *story) room(places int64) (unit int64, total int) {
	s.Helper()
	var free []int64
	for _, name := range append([]string{s.one}, s.many...) {
		node, err := s.client.CoreV1().Nodes().Get(s.ctx, name, metav1.GetOptions{})
		s.must(err, "reading node "+name)
		pods, err := s.client.CoreV1().Pods(corev1.NamespaceAll).List(s.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
		s.must(err, "listing the pods of node "+name)
		left := node.Status.Allocatable.Cpu().MilliValue()
		for i := range pods.Items {
			for _, c := range pods.Items[i].Spec.Containers {
				left -= c.Resources.Requests.Cpu().MilliValue()
			}
		}
		free = append(free, left)
		if u := left / places; unit == 0 || u < unit {
			unit = u
		}
	}
	for _, left := range free {
		total += int(left / unit)
	}
	return unit, total
}

// rejected counts the app's pods that a kubelet has not admitted for want of CPU.
func (s *story) rejected(app string) (n int) {
	s.Helper()
	list, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	s.must(err, "listing pods")
	for i := range list.Items {
		if p := &list.Items[i]; p.Status.Phase == corev1.PodFailed && p.Status.Reason == "OutOfcpu" {
			n++
		}
	}
	return n
}
