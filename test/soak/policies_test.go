// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/evenness"
)

// author is who writes policies, one for each workload that has no placement of its own.
type author struct {
	*actor
	policies dynamic.ResourceInterface
}

func newAuthor(seed uint64, client dynamic.Interface) *author {
	resource := placementv1alpha1.SchemeGroupVersion.WithResource(placementv1alpha1.PlacementPolicyResource)
	a := &author{actor: newActor("author", seed), policies: client.Resource(resource).Namespace(namespace)}
	a.deeds = map[string]deed{"write": a.write, "withdraw": a.withdraw}
	return a
}

// governed are the workloads that policies are for.
func governed() (some []workload) {
	for _, w := range workloads {
		if w.placement == "" {
			some = append(some, w)
		}
	}
	return some
}

func (a *author) anyGoverned() workload {
	some := governed()
	return some[a.IntN(len(some))]
}

// write makes a policy, or makes it another one.
func (a *author) write(ctx context.Context) (bool, error) {
	choices := [][]evenness.Level{{byZone}, {byRack}, {byZone, byRack}, {byRack, byZone}}
	return true, a.put(ctx, a.anyGoverned().name, choices[a.IntN(len(choices))])
}

func (a *author) withdraw(ctx context.Context) (bool, error) {
	err := a.policies.Delete(ctx, a.anyGoverned().name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return true, err
}

// put has a policy spread a workload over levels.
func (a *author) put(ctx context.Context, name string, levels []evenness.Level) error {
	var list []any
	for _, level := range levels {
		// As the annotations have it, by which the others are spread: what is to be even knows no last resort.
		list = append(list, map[string]any{"topologyKey": level.Name, "nodesWithoutKey": "OwnDomain"})
	}
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": placementv1alpha1.SchemeGroupVersion.String(), "kind": "PlacementPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"app": name}}, "levels": list},
	}}
	_, err := a.policies.Apply(ctx, name, policy, metav1.ApplyOptions{FieldManager: "soak", Force: true})
	return err
}
