// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
