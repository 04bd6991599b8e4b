// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/controllers/syncs"
)

// Kinds are those whose statuses are written.
var Kinds = []string{kindPartition, kindAllocation}

const (
	kindPartition  = "Partition"
	kindAllocation = "Allocation"
)

// every is the time between two looks. A status is not written more often, however fast pods come and go.
const every = 5 * time.Second

// Controller writes the statuses.
type Controller struct {
	// Client reads from a cache and writes to the API server.
	Client client.Client
	// Events tells of the pods that are evicted, and why others wait.
	Events events.EventRecorder
	Clock  clock.PassiveClock
	// Schedulers are those whose pods are of allocations, by schedulerName.
	Schedulers []string

	// tried has for pods that must not run at which look their eviction was tried last, of so many looks.
	tried map[types.UID]int64
	looks int64
	// histories are what was said of pods that wait.
	histories map[types.UID]*history
}

// Start looks at all pods until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	syncs.Repeat(ctx, "tenants", every, "Writing the statuses of Partitions and Allocations", c.look)
	return nil
}

// look brings the statuses up to date, says why pods wait, and evicts what must not run.
func (c *Controller) look(ctx context.Context) error {
	all, err := read(ctx, c.Client)
	if err != nil || len(all.partitions)+len(all.allocations) == 0 {
		return err
	}
	order, cluster, err := c.arrange(ctx, &all)
	if err != nil {
		return err
	}
	c.tell(order, cluster.Pods)
	s := statuses{order: order, nodes: cluster.Nodes, now: metav1.NewTime(c.Clock.Now())}
	var errs []error
	for i, p := range all.readPartitions {
		was := statusOf[placementv1alpha1.PartitionStatus](&all.partitions[i])
		errs = append(errs, c.write(ctx, &all.partitions[i], was, s.ofPartition(p, was)))
	}
	for i, a := range all.readAllocations {
		was := statusOf[placementv1alpha1.AllocationStatus](&all.allocations[i])
		errs = append(errs, c.write(ctx, &all.allocations[i], was, s.ofAllocation(a, was)))
	}
	return errors.Join(append(errs, c.evict(ctx, order))...)
}

// arrange puts the pods of the cluster in order, and returns what it is that was put in order.
func (c *Controller) arrange(ctx context.Context, all *objects) (order *allocations.Order, cluster allocations.Cluster, err error) {
	var namespaces corev1.NamespaceList
	var nodes corev1.NodeList
	var pods corev1.PodList
	for what, list := range map[string]client.ObjectList{"namespaces": &namespaces, "nodes": &nodes, "pods": &pods} {
		if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, cluster, fmt.Errorf("listing %s: %w", what, err)
		}
	}
	cluster = allocations.Cluster{
		Nodes: pointers(nodes.Items), Pods: pointers(pods.Items), Schedules: func(name string) bool { return slices.Contains(c.Schedulers, name) },
	}
	return all.claims(namespaces.Items).Arrange(cluster), cluster, nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// write patches the status of an object if it is another one.
func (c *Controller) write(ctx context.Context, object *unstructured.Unstructured, was, status any) error {
	if equality.Semantic.DeepEqual(was, status) {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err == nil {
		changed := object.DeepCopy()
		changed.Object["status"] = content
		err = client.IgnoreNotFound(c.Client.Status().Patch(ctx, changed, client.MergeFrom(object)))
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// statusOf is an object's status, empty if it cannot be decoded.
func statusOf[T any](object *unstructured.Unstructured) *T {
	status := new(T)
	content, _, err := unstructured.NestedMap(object.Object, "status")
	for _, amounts := range []string{"used", "capacity", "reserved"} {
		err = errors.Join(err, allocations.CheckAmounts(content[amounts]))
	}
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, status) != nil {
		return new(T)
	}
	return status
}
