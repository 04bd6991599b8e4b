// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// Simulation is what became of pods that were placed in a simulation.
type Simulation struct {
	// Pods are in the order in which they were placed.
	Pods []Placed `json:"pods"`
	// Trees are how the workloads of the manifest are spread afterwards.
	Trees []Tree `json:"trees,omitempty"`
	// Ignored names the kinds of objects of the manifest that are no workloads.
	Ignored []string `json:"ignored,omitempty"`
	// Unread names what of the cluster could not be read.
	Unread []string `json:"unread,omitempty"`
}

// Placed is a pod in a simulation.
type Placed struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Of is the workload, "" for a pod of a drained node.
	Of string `json:"of,omitempty"`
	// Node is "" for a pod that stays pending.
	Node string `json:"node,omitempty"`
	// Message says why it stays pending.
	Message string `json:"message,omitempty"`
}

// Pending counts the pods that stay pending.
func (s *Simulation) Pending() (n int) {
	for i := range s.Pods {
		if s.Pods[i].Node == "" {
			n++
		}
	}
	return n
}

// withPolicies are some policies, with others in the place of those of the same name.
func withPolicies(there, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	kept := slices.DeleteFunc(slices.Clone(there), func(p *unstructured.Unstructured) bool {
		return slices.ContainsFunc(others, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == p.GetKind() && o.GetNamespace() == p.GetNamespace() && o.GetName() == p.GetName()
		})
	})
	return append(kept, others...)
}

// Simulate places the pods that a snapshot lacks of the workloads of a manifest, under its policies too, after the nodes have changed. Replicas below 0 are those of the
// manifest. Progress is told how many of all pods are placed.
func Simulate(ctx context.Context, s *snapshot.Snapshot, configuration []byte, change Change, manifest *Manifest, replicas int, progress func(done, all int)) (*Simulation, error) {
	changed, homeless, err := change.apply(s)
	if err != nil {
		return nil, err
	}
	var todo []*corev1.Pod
	var of []Ref
	for _, p := range homeless {
		todo, of = append(todo, p), append(of, Ref{})
	}
	var sets []runtime.Object
	for i := range manifest.Workloads {
		w := &manifest.Workloads[i]
		wanted := w.Replicas
		if replicas >= 0 && !w.isPod {
			wanted = replicas
		}
		pods, set, err := w.pods(changed, wanted)
		if err != nil {
			return nil, err
		}
		if set != nil {
			sets = append(sets, set)
		}
		for _, p := range pods {
			todo, of = append(todo, p), append(of, w.Ref)
		}
	}
	changed.Objects = slices.Concat(changed.Objects, sets)
	changed.Policies = withPolicies(s.Policies, manifest.Policies)
	c, err := Open(ctx, changed, configuration, Hints)
	if err != nil {
		return nil, err
	}
	out := &Simulation{Unread: s.Unread, Ignored: manifest.Others}
	last := make(map[Ref]*corev1.Pod)
	for i, p := range todo {
		progress(i, len(todo))
		d, err := c.Place(ctx, p)
		if err != nil {
			return nil, err
		}
		placed := Placed{Namespace: p.Namespace, Name: p.Name, Node: d.Node, Message: d.Message}
		if of[i] != (Ref{}) {
			placed.Of = of[i].String()
		}
		out.Pods = append(out.Pods, placed)
		last[of[i]] = p
	}
	for i := range manifest.Workloads {
		w := &manifest.Workloads[i]
		p := last[w.Ref]
		if p == nil || w.isPod {
			continue
		}
		next := p.DeepCopy()
		next.Name, next.UID = fmt.Sprint(w.Name, "-next"), next.UID+"-next"
		t, err := c.treeOf(ctx, w.Ref, next)
		if err != nil {
			return nil, err
		}
		out.Trees = append(out.Trees, t)
	}
	return out, nil
}
