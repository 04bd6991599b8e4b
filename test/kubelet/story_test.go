// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

const (
	zoneLabel = corev1.LabelTopologyZone

	// timeout is how long anything may take: a node that hangs is known to after
	// close to a minute, and a container that fails waits ever longer for its next start.
	timeout = 4 * time.Minute
)

var byZone = evenness.Level{Name: zoneLabel}

// story is one test, with a namespace of its own and the nodes that all stories share.
type story struct {
	testing.TB
	ctx    context.Context
	client kubernetes.Interface
	ns     string
	// many are the nodes of the large zone, one the node of the small one.
	many []string
	one  string
}

// begin starts a story, when all nodes are well and nothing is left of the story before.
func begin(t *testing.T) *story {
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	s := &story{TB: t, ctx: t.Context(), client: world.client, ns: fmt.Sprintf("kubelet-%s-%05x", name[:min(len(name), 40)], rand.N(1<<20))}
	s.allWell()
	_, err := s.client.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}, metav1.CreateOptions{})
	s.must(err, "creating the story's namespace")
	t.Cleanup(s.end)
	return s
}

// allWell waits until every node takes pods, and learns the nodes' names.
func (s *story) allWell() {
	s.Helper()
	s.until("all nodes to take pods", func() error {
		s.many, s.one = nil, ""
		list, err := s.client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{LabelSelector: zoneLabel + " in (zone-a, zone-b)"})
		if err != nil {
			return err
		}
		for i := range list.Items {
			node := &list.Items[i]
			if !takesPods(node) {
				return fmt.Errorf("node %s is not ready or is tainted", node.Name)
			}
			if node.Labels[zoneLabel] == "zone-b" {
				s.one = node.Name
			} else {
				s.many = append(s.many, node.Name)
			}
		}
		if len(s.many) != 3 || s.one == "" {
			return fmt.Errorf("zone-a is %v, zone-b %q: kind.yaml says three nodes and one", s.many, s.one)
		}
		slices.Sort(s.many)
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

// end deletes the story's namespace and waits until it is gone: its pods would be in
// the way of the next story's.
func (s *story) end() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if s.Failed() {
		s.Logf("pods at the end:\n%s\nevents:\n%s", s.pods(ctx), s.warnings(ctx))
	}
	s.ctx = ctx
	err := s.client.CoreV1().Namespaces().Delete(ctx, s.ns, metav1.DeleteOptions{})
	s.must(err, "deleting the story's namespace")
	s.until("the namespace to be gone", func() error {
		_, err := s.client.CoreV1().Namespaces().Get(ctx, s.ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}

// pods lists the story's pods for a person who reads a failure.
func (s *story) pods(ctx context.Context) string {
	list, err := s.client.CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := range list.Items {
		p := &list.Items[i]
		fmt.Fprintf(&b, "%s on %q %s %s %s", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Reason, waitsFor(p))
		if p.DeletionTimestamp != nil {
			b.WriteString(" and is to end")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// warnings lists the story's warnings for a person who reads a failure.
func (s *story) warnings(ctx context.Context) string {
	list, err := s.client.CoreV1().Events(s.ns).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, e := range list.Items {
		fmt.Fprintf(&b, "%s %s: %s\n", e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return b.String()
}

func (s *story) must(err error, doing string) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// until polls: nil ends it, and when timeout is at its end the last error is the failure.
func (s *story) until(what string, check func() error) {
	s.Helper()
	if err := rig.Poll(s.ctx, timeout, 250*time.Millisecond, what, check); err != nil {
		s.Fatal(err)
	}
}

// settled waits until n pods of the app run and are ready, and no others are left, and returns where they are.
func (s *story) settled(app string, n int) *rig.Observation {
	s.Helper()
	return s.observe(app, n, func(p *corev1.Pod) error {
		if !ready(p) {
			return fmt.Errorf("pod %s on node %q is %s and not ready: %s", p.Name, p.Spec.NodeName, p.Status.Phase, waitsFor(p))
		}
		return nil
	})
}

// observe waits until the app has n pods on nodes that pass the check, and no others
// are left, and returns where they are.
func (s *story) observe(app string, n int, check func(*corev1.Pod) error) *rig.Observation {
	s.Helper()
	var o *rig.Observation
	s.until(fmt.Sprintf("%d pods of %s", n, app), func() (err error) {
		o, err = rig.Observe(s.ctx, s.client, rig.Workload{Namespace: s.ns, Selector: "app=" + app, Levels: []evenness.Level{byZone}})
		if err != nil {
			return err
		}
		if len(o.Pods) != n || o.Pending > 0 || o.Leaving > 0 {
			return fmt.Errorf("%d pods, of them %d pending, and %d leaving", len(o.Pods), o.Pending, o.Leaving)
		}
		for i := range o.Pods {
			if err := check(&o.Pods[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return o
}

// zones fails the story unless the zones have so many pods.
func (s *story) zones(o *rig.Observation, many, one int) {
	s.Helper()
	got := evenness.Counts(0, o.Nodes)
	if got["zone-a"] != many || got["zone-b"] != one {
		s.Errorf("zone-a has %d pods and zone-b %d, want %d and %d\n%s", got["zone-a"], got["zone-b"], many, one, o.Draw())
	}
}
