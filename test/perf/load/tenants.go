// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var tenantsVersion = schema.GroupVersion{Group: "placement.espalier.dev", Version: "v1alpha1"}

const (
	partition = "all"
	// siblings is how many allocations are below one.
	siblings = 9
)

// Tenants are what an operator makes to give each group an allocation of its own: a Partition of all nodes, and in it the allocations,
// every tenth of which is above the nine that follow. Nothing, for other workloads.
func (w Workload) Tenants() []*unstructured.Unstructured {
	if !w.Allocated {
		return nil
	}
	all := []*unstructured.Unstructured{tenant("Partition", partition, map[string]any{"nodeSelector": map[string]any{}})}
	for group := range w.Groups {
		spec := map[string]any{
			"reserved":       map[string]any{"cpu": "100m", "memory": "160Mi"},
			"rankAdjustment": int64(group % 3),
			"assignments": []any{map[string]any{
				"namespaceSelector": map[string]any{}, "podSelector": map[string]any{"matchLabels": map[string]any{AppLabel: GroupName(group)}},
			}},
		}
		if top := group - group%(1+siblings); top == group {
			spec["partition"] = partition
		} else {
			spec["parent"] = GroupName(top)
		}
		all = append(all, tenant("Allocation", GroupName(group), spec))
	}
	return all
}

func tenant(kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(tenantsVersion.WithKind(kind))
	o.SetName(name)
	return o
}
