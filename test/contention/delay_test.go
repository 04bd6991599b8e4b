// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// timed is how many bindings are timed, one after the other. Of a thousand, one burst of other work on the machine would be the slowest ten.
	timed = 5000
	// delay is by how much the arbiter may make a binding take longer, 99 of 100 of them.
	delay = 3 * time.Millisecond
)

// Bindings are made one after the other, some without the arbiter, then as many with it, and so on: whatever else the machine does befalls both.
// The stories of schedulers cannot show what it adds, as their bindings wait for each other.
func TestBindingTakesNoLonger(t *testing.T) {
	s := begin(t)
	s.nodes(125, 100)
	var took [2][]time.Duration
	const turns = 5
	for turn := range turns {
		for with := range took {
			t.Run(fmt.Sprintf("turn %d, arbiter %t", turn, with == 1), func(t *testing.T) {
				part := &story{T: t, ctx: t.Context(), client: s.client, name: s.name, slots: s.slots}
				if with == 1 {
					part.webhook()
					part.arbiter(fmt.Sprint("arbiter-", turn))
				}
				took[with] = append(took[with], part.bindEach(fmt.Sprintf("%d-%d", turn, with), timed/turns)...)
			})
		}
	}
	p50, p99 := [2]time.Duration{}, [2]time.Duration{}
	for with, of := range took {
		slices.Sort(of)
		p50[with], p99[with] = of[len(of)/2], of[len(of)*99/100]
	}
	t.Logf("a binding takes %s, 99 of 100 %s; with the arbiter %s and %s", p50[0], p99[0], p50[1], p99[1])
	if p99[1] > p99[0]+delay {
		t.Errorf("99 of 100 bindings take %s longer", p99[1]-p99[0])
	}
}

// bindEach makes pods and binds them to nodes in turn, and returns how long each binding took.
func (s *story) bindEach(name string, n int) (took []time.Duration) {
	s.Helper()
	pod := func(i int) string { return fmt.Sprintf("timed-%s-%04d", name, i) }
	s.each(n, func(ctx context.Context, i int) error { return s.create(ctx, s.pod(pod(i), "nobody")) })
	nodes, err := s.client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{LabelSelector: storyLabel + "=" + s.name})
	s.must(err)
	for i := range n {
		begun := time.Now()
		s.must(s.client.CoreV1().Pods(s.name).Bind(s.ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod(i)}, Target: corev1.ObjectReference{Kind: "Node", Name: nodes.Items[i%len(nodes.Items)].Name},
		}, metav1.CreateOptions{}))
		took = append(took, time.Since(begun))
	}
	return took
}
