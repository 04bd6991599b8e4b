// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	s.until("pod "+pod+" to be on node "+node, func() error {
		p, err := s.client.CoreV1().Pods(s.ns).Get(s.ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.Spec.NodeName != node {
			return fmt.Errorf("it is on %q", p.Spec.NodeName)
		}
		return nil
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
	s.must(s.client.CoreV1().Pods(s.ns).Delete(s.ctx, "first", metav1.DeleteOptions{}), "deleting the first pod")
	s.onNode("third", nodes[1])
}

// highPriority makes a priority class for the story, and returns what gives it to a pod.
func (s *story) highPriority() func(*corev1.PodSpec) {
	s.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Value: 1000}
	_, err := s.client.SchedulingV1().PriorityClasses().Create(s.ctx, class, metav1.CreateOptions{})
	s.must(err, "creating a priority class")
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.client.SchedulingV1().PriorityClasses().Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil {
			s.Errorf("deleting the priority class: %v", err)
		}
	})
	return func(spec *corev1.PodSpec) { spec.PriorityClassName = s.name }
}
