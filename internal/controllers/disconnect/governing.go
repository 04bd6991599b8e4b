// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package disconnect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/policy"
)

// rule is what a policy says of pods on nodes that do not answer.
type rule struct {
	replaceAfter, lostAfter time.Duration
	keep                    placementv1alpha1.Keep
}

// governing are the policies of all namespaces.
type governing struct {
	cluster []*clusterview.Policy
	own     map[string][]*clusterview.Policy
	labels  map[string]labels.Set
}

// readGoverning reads them from a cache.
func readGoverning(ctx context.Context, cache client.Reader) (*governing, error) {
	g := &governing{own: make(map[string][]*clusterview.Policy), labels: make(map[string]labels.Set)}
	for _, kind := range policy.Kinds {
		objects, err := policy.List(ctx, cache, kind, "")
		if err != nil {
			return nil, err
		}
		for i := range objects {
			if p := clusterview.DecodePolicy(&objects[i]); p.Cluster() {
				g.cluster = append(g.cluster, p)
			} else {
				g.own[p.Namespace] = append(g.own[p.Namespace], p)
			}
		}
	}
	slices.SortFunc(g.cluster, (*clusterview.Policy).Compare)
	for _, list := range g.own {
		slices.SortFunc(list, (*clusterview.Policy).Compare)
	}
	var namespaces corev1.NamespaceList
	if err := cache.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	for i := range namespaces.Items {
		g.labels[namespaces.Items[i].Name] = namespaces.Items[i].Labels
	}
	return g, nil
}

// ruleFor returns what the policy of a pod says, nil if it says nothing.
func (g *governing) ruleFor(pod *corev1.Pod) *rule {
	p := clusterview.Governing(clusterview.Effective(g.cluster, g.own[pod.Namespace], g.labels[pod.Namespace]), pod)
	if p == nil || p.Disconnect == nil {
		return nil
	}
	// The API server fills in the defaults, unless it knew an older definition.
	d := p.Disconnect
	return &rule{
		replaceAfter: time.Duration(ptr.Deref(d.ReplaceAfterSeconds, 30)) * time.Second,
		lostAfter:    time.Duration(cmp.Or(d.LostAfterSeconds, 3600)) * time.Second,
		keep:         cmp.Or(d.Keep, placementv1alpha1.KeepBestPlaced),
	}
}
