// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// engine runs a command of the engine, whatever has become of the story's own context:
// what was broken must be mended also when the story has failed. It returns all that was said.
func (s *story) engine(args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		s.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// shell runs a script on a node.
func (s *story) shell(node, script string) string {
	s.Helper()
	return s.engine("exec", node, "sh", "-euc", script)
}

// broken breaks something now, and mends it when mend is called or the story ends.
func (s *story) broken(breakIt, mendIt func()) (mend func()) {
	s.Helper()
	done := false
	mend = func() {
		if !done {
			done = true
			mendIt()
		}
	}
	s.Cleanup(mend)
	breakIt()
	return mend
}

// notReady waits until the node is known not to be, and pods are kept away from it.
func (s *story) notReady(node string) {
	s.Helper()
	s.Until("node "+node+" not to be ready", func() error {
		n, err := s.Client.CoreV1().Nodes().Get(s.Ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, t := range n.Spec.Taints {
			if t.Key == corev1.TaintNodeUnreachable && t.Effect == corev1.TaintEffectNoSchedule {
				return nil
			}
		}
		return fmt.Errorf("its taints are %v", n.Spec.Taints)
	})
}

// marked waits until an Event says that the node is faulty for a workload of the story.
func (s *story) marked(node string) {
	s.Helper()
	s.Until("node "+node+" to be called faulty", func() error {
		events, err := s.Client.CoreV1().Events(corev1.NamespaceAll).List(s.Ctx, metav1.ListOptions{FieldSelector: "reason=NodeFaulty"})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == node && strings.Contains(e.Message, s.NS) {
				s.Logf("%s: %s", node, e.Message)
				return nil
			}
		}
		return fmt.Errorf("none of %d events says so", len(events.Items))
	})
}

// runningOn counts the app's pods that are ready, and are not to end, on some nodes.
func (s *story) runningOn(app string, nodes ...string) (int, error) {
	list, err := s.Client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range list.Items {
		if p := &list.Items[i]; rig.IsReady(p) && slices.Contains(nodes, p.Spec.NodeName) {
			n++
		}
	}
	return n, nil
}

// podEvents selects what has happened to a pod for a reason.
func podEvents(p *corev1.Pod, reason string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fmt.Sprintf("involvedObject.uid=%s,reason=%s", p.UID, reason)}
}
