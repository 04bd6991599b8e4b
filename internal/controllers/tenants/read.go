// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/controllers/policy"
)

// objects are all Partitions and Allocations, as the API server has them, and read in the same order.
type objects struct {
	partitions, allocations []unstructured.Unstructured
	readPartitions          []*allocations.Partition
	readAllocations         []*allocations.Allocation
}

func read(ctx context.Context, from client.Reader) (o objects, err error) {
	if o.partitions, err = policy.List(ctx, from, kindPartition, ""); err != nil {
		return o, err
	}
	if o.allocations, err = policy.List(ctx, from, kindAllocation, ""); err != nil {
		return o, err
	}
	for i := range o.partitions {
		o.readPartitions = append(o.readPartitions, allocations.DecodePartition(&o.partitions[i]))
	}
	for i := range o.allocations {
		o.readAllocations = append(o.readAllocations, allocations.DecodeAllocation(&o.allocations[i]))
	}
	return o, nil
}

// claims knows which allocation the pods of these namespaces are of.
func (o *objects) claims(namespaces []corev1.Namespace) *allocations.Claims {
	labelsOf := make(map[string]labels.Set, len(namespaces))
	for i := range namespaces {
		labelsOf[namespaces[i].Name] = namespaces[i].Labels
	}
	return allocations.NewTree(o.readPartitions, o.readAllocations).Claims(func(name string) (labels.Set, bool) { set, known := labelsOf[name]; return set, known })
}

// Claims reads which allocation the pods of these namespaces are of. Where a kind is not installed they are of none.
func Claims(ctx context.Context, from client.Reader, namespaces []corev1.Namespace) (*allocations.Claims, error) {
	o, err := read(ctx, from)
	if meta.IsNoMatchError(err) {
		o = objects{}
	} else if err != nil {
		return nil, err
	}
	return o.claims(namespaces), nil
}
