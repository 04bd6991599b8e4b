// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// A pod that is deleted at once makes way for another of its name, and that one is left alone.
func TestNextPodOfTheSameName(t *testing.T) {
	s := begin(t, faults)
	s.needsFailures()
	nodes := s.nodes(1, 4, zone("zone-a"))
	template := s.template("app", "")
	template.Spec.NodeName = nodes[0]
	template.Spec.TerminationGracePeriodSeconds = nil
	pods := s.client.CoreV1().Pods(s.ns)
	create := func(name string) types.UID {
		pod, err := pods.Create(s.ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: template.Labels},
			Spec:       template.Spec,
		}, metav1.CreateOptions{})
		s.must(err, "creating pod "+name)
		return pod.UID
	}
	runs := func(name string, uid types.UID) {
		s.until("pod "+name, func() error {
			pod, err := pods.Get(s.ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if pod.UID != uid {
				return fmt.Errorf("pod %s is another one", name)
			}
			return isReady(pod)
		})
	}
	for i := range 60 {
		name := fmt.Sprintf("app-%d", i%3)
		runs(name, create(name))
		s.must(pods.Delete(s.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}), "deleting pod "+name)
		next := create(name)
		runs(name, next)
		s.must(pods.Delete(s.ctx, name, metav1.DeleteOptions{}), "deleting pod "+name)
		s.until("pod "+name+" to be gone", func() error {
			_, err := pods.Get(s.ctx, name, metav1.GetOptions{})
			switch {
			case gone(err):
				return nil
			case err == nil:
				return fmt.Errorf("pod %s is still there", name)
			}
			return err
		})
	}
}
