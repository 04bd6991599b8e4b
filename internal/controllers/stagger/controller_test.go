// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// A cache that does not show yet that a node was cordoned does not have another one of its zone follow.
func TestStaleCache(t *testing.T) {
	p := newPool(t, blue("n1", "a"), blue("n2", "a"))
	p.lookAt(newYear)
	stale := p.nodes()
	p.Client = interceptor.NewClient(p.api.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if nodes, is := list.(*corev1.NodeList); is {
				nodes.Items = nil
				for i := range stale {
					nodes.Items = append(nodes.Items, *stale[i].DeepCopy())
					p.report(&nodes.Items[i])
				}
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	end := newYear.Add(21 * day)
	for i := range 5 {
		p.lookAt(end.Add(time.Duration(i) * time.Second))
	}
	out := 0
	for _, n := range p.nodes() {
		if n.Spec.Unschedulable {
			out++
		}
	}
	if out != 1 {
		t.Errorf("%d nodes of a zone are out of service", out)
	}
}

// An API server that answers nothing changes nothing, and the next look goes on.
func TestErrors(t *testing.T) {
	p := newPool(t, blue("n1", "a"))
	broken := errors.New("the API server is starting")
	p.Client = interceptor.NewClient(p.api.(client.WithWatch), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return broken
		},
	})
	if err := p.look(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	p.Client = p.reporting()
	p.lookAt(newYear)
	if p.ends()["n1"] == "" {
		t.Error("it has no end")
	}
}

// Nodes of a pool that is being made wait for each other, so that they have their ends together: a minute at most, and not for those that are
// back.
func TestNodesOfAPoolThatGrowsWaitForEachOther(t *testing.T) {
	p := newPool(t)
	ended := func() int {
		return len(slices.DeleteFunc(p.nodes(), func(n corev1.Node) bool { return n.Annotations[clusterview.ValidUntilAnnotation] == "" }))
	}
	for i, want := range []int{0, 0, 0, 3, 3, 4} {
		if i < 3 || i == 4 {
			if err := p.api.Create(t.Context(), blue(fmt.Sprint("n", i), "zone-0")); err != nil {
				t.Fatal(err)
			}
		}
		if p.lookAt(newYear.Add(time.Duration(i) * every)); ended() != want {
			t.Errorf("at look %d %d nodes have ends, want %d", i, ended(), want)
		}
	}
	for i := range 13 { // one comes before each look
		if err := p.api.Create(t.Context(), blue(fmt.Sprint("m", i), "zone-0")); err != nil {
			t.Fatal(err)
		}
		if p.lookAt(newYear.Add(time.Hour + time.Duration(i)*every)); (ended() > 4) != (i == 12) {
			t.Errorf("at look %d %d nodes have ends", i, ended())
		}
	}
}
