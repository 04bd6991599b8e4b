// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package governing says which policy governs a pod, for controllers that look at pods again and again.
package governing

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/policy"
)

// Reader reads the policies of a cluster. The zero Reader has read none. It is not safe for concurrent use.
type Reader struct {
	// last are those that were read last: one that has not changed since is not decoded again.
	last map[types.NamespacedName]*clusterview.Policy
}

// Policies are those of a cluster at one moment, in the order of Policy.Compare.
type Policies struct {
	cluster []*clusterview.Policy
	own     map[string][]*clusterview.Policy
	// labels are those of the namespaces.
	labels map[string]labels.Set
	// effective are those that have a say in a namespace, where somebody has asked for them.
	effective map[string][]*clusterview.Policy
}

// Read reads the policies as a cache has them.
func (r *Reader) Read(ctx context.Context, cache client.Reader) (*Policies, error) {
	p := &Policies{own: make(map[string][]*clusterview.Policy), labels: make(map[string]labels.Set), effective: make(map[string][]*clusterview.Policy)}
	read := make(map[types.NamespacedName]*clusterview.Policy, len(r.last))
	for _, kind := range policy.Kinds {
		objects, err := policy.List(ctx, cache, kind, "", client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			key := client.ObjectKeyFromObject(&objects[i]) // those of the cluster have no namespace
			is, known := r.last[key]
			if !known || !is.ReadFrom(&objects[i]) {
				is = clusterview.DecodePolicy(&objects[i])
			}
			read[key] = is
			if is.Cluster() {
				p.cluster = append(p.cluster, is)
			} else {
				p.own[is.Namespace] = append(p.own[is.Namespace], is)
			}
		}
	}
	r.last = read
	slices.SortFunc(p.cluster, (*clusterview.Policy).Compare)
	for _, list := range p.own {
		slices.SortFunc(list, (*clusterview.Policy).Compare)
	}
	var namespaces corev1.NamespaceList
	if err := cache.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	for i := range namespaces.Items {
		p.labels[namespaces.Items[i].Name] = namespaces.Items[i].Labels
	}
	return p, nil
}

// Of returns the policy that governs a pod, nil if none does.
func (p *Policies) Of(pod *corev1.Pod) *clusterview.Policy {
	effective, known := p.effective[pod.Namespace]
	if !known {
		effective = clusterview.Effective(p.cluster, p.own[pod.Namespace], p.labels[pod.Namespace])
		p.effective[pod.Namespace] = effective
	}
	return clusterview.Governing(effective, pod)
}
