// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// ReadClusterPolicy reads a ClusterPlacementPolicy as ReadPolicy does a policy of one namespace, but for its selector of
// namespaces: if that cannot be read, the policy is for none. Pods of all namespaces would have to wait otherwise, until somebody
// who runs the cluster mends it.
func ReadClusterPolicy(in *placementv1alpha1.ClusterPlacementPolicy) *Policy {
	p := ReadPolicy(&placementv1alpha1.PlacementPolicy{ObjectMeta: in.ObjectMeta, Spec: in.Spec.PlacementPolicySpec})
	var err error
	if p.namespaces, err = readSelector("spec.namespaceSelector", &in.Spec.NamespaceSelector); err != nil {
		p.namespaces = labels.Nothing()
		p.levelsErr, p.limitsErr = err, err
	}
	return p
}

// undecodableClusterPolicy is a ClusterPlacementPolicy of which only the selectors could be decoded, if those. Without a selector of
// namespaces it is for none.
func undecodableClusterPolicy(in *placementv1alpha1.ClusterPlacementPolicy, selectsNamespaces bool, err error) *Policy {
	p := ReadClusterPolicy(in)
	if !selectsNamespaces {
		p.namespaces = labels.Nothing()
	}
	return p.undecodable(err)
}

// SelectsNamespace reports whether a ClusterPlacementPolicy is for a namespace, by the labels of it.
func (p *Policy) SelectsNamespace(namespace labels.Set) bool {
	return p.Cluster() && p.namespaces.Matches(namespace)
}

// ForNone reports that a ClusterPlacementPolicy is for no namespace, because its selector of these cannot be read.
func (p *Policy) ForNone() bool {
	if !p.Cluster() {
		return false
	}
	_, selectable := p.namespaces.Requirements()
	return !selectable
}

// MaxPolicies bounds the policies of a namespace that have a say, and the ClusterPlacementPolicies: the first in order of Compare. Each
// pod is compared with all of them, and a tenant must not make that slow for others.
const MaxPolicies = 100

// Effective returns the policies that have a say in a namespace, in order of Compare: its own, and those of the cluster that
// select it by its labels. Both must be in that order.
func Effective(cluster, own []*Policy, namespace labels.Set) []*Policy {
	own = own[:min(len(own), MaxPolicies)]
	effective := slices.Clip(own)
	for _, p := range cluster[:min(len(cluster), MaxPolicies)] {
		if p.SelectsNamespace(namespace) {
			effective = append(effective, p)
		}
	}
	if len(effective) > len(own) {
		slices.SortStableFunc(effective, (*Policy).Compare)
	}
	return effective
}
