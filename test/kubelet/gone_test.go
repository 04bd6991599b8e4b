// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func running(p *corev1.Pod) error {
	if p.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("pod %s on node %q is %s: %s", p.Name, p.Spec.NodeName, p.Status.Phase, waitsFor(p))
	}
	return nil
}

// A kubelet is stopped. Its containers run on and nobody deletes the pods, but nobody
// knows how they are: they do not count, and what comes makes up for them. They count
// again as soon as the kubelet is back.
func TestKubeletStoppedAndStarted(t *testing.T) {
	s := begin(t)
	s.deploy("app", 8)
	o := s.settled("app", 8)
	s.zones(o, 4, 4)
	// One of the three has two of the four pods.
	lost, on := "", o.OnNodes()
	for _, node := range s.many {
		if on[node] == 2 {
			lost = node
		}
	}
	mend := s.broken(func() { s.shell(lost, "systemctl stop kubelet") }, func() { s.shell(lost, "systemctl start kubelet") })
	s.notReady(lost)

	s.scale("app", 12)
	o = s.observe("app", 12, running)
	s.zones(o, 7, 5) // without the two: five and five
	if n := o.OnNodes()[lost]; n != 2 {
		s.Errorf("node %s has %d pods, want the two of before", lost, n)
	}

	mend()
	s.allWell()
	s.zones(s.settled("app", 12), 7, 5)
	s.scale("app", 14)
	s.zones(s.settled("app", 14), 7, 7)
}

// A zone's one node hangs, with all that is on it, until its pods are replaced
// elsewhere. When it wakes up it ends those it has, and takes its share of what comes.
func TestNodePaused(t *testing.T) {
	s := begin(t)
	s.deploy("app", 8, func(spec *corev1.PodSpec) {
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](1),
			})
		}
	})
	s.zones(s.settled("app", 8), 4, 4)
	mend := s.broken(func() { s.engine("pause", s.one) }, func() { s.engine("unpause", s.one) })
	s.notReady(s.one)
	s.until("eight pods in the other zone", func() error {
		n, err := s.runningOn("app", s.many...)
		if err == nil && n != 8 {
			err = fmt.Errorf("there are %d", n)
		}
		return err
	})

	mend()
	s.allWell()
	s.zones(s.settled("app", 8), 8, 0)
	s.scale("app", 12)
	s.zones(s.settled("app", 12), 8, 4)
}
