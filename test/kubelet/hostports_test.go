// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kubeletPort is taken on every node, by its kubelet.
const kubeletPort = 10250

// listening has the container listen at a port of the node, and nowhere else.
func listening(port int32) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.HostNetwork = true
		spec.Containers[0].Args = append(spec.Containers[0].Args, fmt.Sprintf("-listen=:%d", port))
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
	}
}

// fetch asks a port of a node, by way of the API server.
func (s *story) fetch(node string, port int32) (string, error) {
	body, err := s.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(fmt.Sprintf("%s:%d", node, port)).SubResource("proxy").DoRaw(s.Ctx)
	return strings.TrimSpace(string(body)), err
}

// reserve writes down the host ports that a node holds itself; none takes the note away, whatever
// has become of the story's own context: all stories share the nodes.
func (s *story) reserve(node, ports string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	value := "null"
	if ports != "" {
		value = fmt.Sprintf("%q", ports)
	}
	patch := `{"metadata":{"annotations":{"espalier.dev/reserved-host-ports":` + value + `}}}`
	_, err := s.Client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	s.Must(err, "annotating node "+node)
}

// refused waits until the app has one pod without a node, and its condition gives this reason.
func (s *story) refused(app, reason string) {
	s.Helper()
	s.Until("a pod to be refused for "+reason, func() error {
		list, err := s.Client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app, FieldSelector: "spec.nodeName="})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d pods have no node", len(list.Items))
		}
		for _, c := range list.Items[0].Status.Conditions {
			if c.Type == corev1.PodScheduled && strings.Contains(c.Message, reason) {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", list.Items[0].Status.Conditions)
	})
}

// Every pod really listens at the port that it was placed for. One more has no node
// left, says so, and gets the port of the first that ends.
func TestHostPortTrulyTaken(t *testing.T) {
	const port = 18080
	s := begin(t)
	s.deploy("app", 4, listening(port))
	s.zones(s.settled("app", 4), 3, 1)
	for _, node := range append(slices.Clone(s.many), s.one) {
		s.Until("an answer from node "+node, func() error {
			got, err := s.fetch(node, port)
			if err == nil && got != node {
				err = fmt.Errorf("got %q, want the node's name", got)
			}
			return err
		})
	}

	template := s.template("next", listening(port))
	s.create("next", 1, template)
	s.refused("next", "didn't have free host port 18080/tcp")
	s.Scale("app", 0)
	o := s.settled("next", 1)
	s.Until("an answer from the next pod", func() error {
		for node := range o.OnNodes() {
			if got, err := s.fetch(node, port); err != nil || got != node {
				return errors.Join(fmt.Errorf("node %s answers %q", node, got), err)
			}
		}
		return nil
	})
}

// A port that the node holds itself is no secret of the node's: written down, it keeps
// the pod away. That it is right to, the pod shows when the note is taken away.
func TestHostPortHeldByTheNode(t *testing.T) {
	s := begin(t)
	nodes := append(slices.Clone(s.many), s.one)
	mend := s.broken(func() {
		for _, node := range nodes {
			s.reserve(node, fmt.Sprintf("%d/tcp", kubeletPort))
		}
	}, func() {
		for _, node := range nodes {
			s.reserve(node, "")
		}
	})
	s.deploy("app", 1, listening(kubeletPort))
	s.refused("app", fmt.Sprintf("4 node(s) reserved host port %d/tcp", kubeletPort))
	mend()
	s.observe("app", 1, func(p *corev1.Pod) error {
		for _, c := range p.Status.ContainerStatuses {
			if end := c.LastTerminationState.Terminated; end != nil && end.ExitCode == 1 {
				return nil
			}
		}
		return fmt.Errorf("pod %s on node %s has not failed: %s", p.Name, p.Spec.NodeName, waitsFor(p))
	})
}
