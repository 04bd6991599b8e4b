// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
	"github.com/espalier-scheduler/espalier/pkg/placement/eviction"
)

// kinds are Partitions and Allocations, in this order.
const (
	ofPartitions = iota
	ofAllocations
	kinds
)

// noun is what their objects are called in messages.
const noun = "partitions and allocations"

// Tenants is the order of all partitions. It is safe for concurrent use.
type Tenants struct {
	pods       corelisters.PodLister
	nodes      corelisters.NodeLister
	namespaces corelisters.NamespaceLister
	// activate puts pods into the queue. The queue asks plugins meanwhile, so it is called without mu.
	activate func(map[string]*corev1.Pod)
	of       [kinds]*optionalkind.Kind
	// changed has one token if the order is to be computed anew.
	changed chan struct{}
	// evicting says whether there is anybody in evicted.
	evicting atomic.Bool

	mu sync.RWMutex // guards all below
	// schedulers are those of the profiles that have the plugin.
	schedulers  map[string]bool
	partitions  map[string]*allocations.Partition
	allocations map[string]*allocations.Allocation
	// claims are those of now, and order the last one that was computed. Neither is nil.
	claims *allocations.Claims
	order  *allocations.Order
	// serial is another one for each tree of Partitions and Allocations.
	serial uint64
	// anew says that whoever found no place is let in anew with the next order: Partitions, Allocations or namespaces are others, or
	// nodes are open to them that were not.
	anew bool
	// windows are those of the partitions, by name.
	windows map[string]*window
	turns   map[types.UID]turn
	// held are the pods that were not let in, or not let pass, and retry those that were refused for what may be otherwise in the next order.
	held, retry map[types.UID]*corev1.Pod
	// tried has for pods that found no place what ran after them then.
	tried map[types.UID]uint64
	// reserved are the pods that are being bound.
	reserved map[types.UID]reservation
	// made is who made way for whom, and evicted who did for each pod that waits for that.
	made    eviction.MadeWay
	evicted map[types.UID]Evicted
	// deleted are the pods that were deleted and may be in the cache still.
	deleted map[types.UID]bool
	// version is another one whenever somebody may find a place who did not.
	version uint64
}

// shared has the tenants of each scheduler of this process: one, outside of tests.
// The framework hands a plugin nothing else in which its profiles could meet.
var shared = struct {
	sync.Mutex // guards of
	of         map[informers.SharedInformerFactory]*Tenants
}{of: make(map[informers.SharedInformerFactory]*Tenants)}

// For returns the tenants of the scheduler that the handle belongs to, whose pods are in the order from then on. The first call starts to
// watch, until the context ends. A handle without an API server, as in a simulation, has none.
func For(ctx context.Context, handle fwk.Handle) (*Tenants, error) {
	factory := handle.SharedInformerFactory()
	shared.Lock()
	defer shared.Unlock()
	t, ok := shared.of[factory]
	if !ok {
		t = newTenants(factory, func(pods map[string]*corev1.Pod) { handle.Activate(klog.FromContext(ctx), pods) })
		config := handle.KubeConfig()
		if config == nil {
			for k := range kinds {
				t.of[k] = optionalkind.Known()
			}
			return t, nil
		}
		servers, err := optionalkind.APIServers(config, placementv1alpha1.SchemeGroupVersion, placementv1alpha1.PartitionResource, placementv1alpha1.AllocationResource)
		if err != nil {
			return nil, err
		}
		synced, err := t.watch(factory)
		if err != nil {
			return nil, err
		}
		for k, server := range servers {
			go t.of[k].Watch(ctx, server)
		}
		go t.run(ctx, synced)
		t.shareLocked(ctx, factory)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.schedulers[handle.ProfileName()] = true
	return t, nil
}

// shareLocked has For return the tenants for a factory, until the context ends. The caller holds the lock of shared.
func (t *Tenants) shareLocked(ctx context.Context, factory informers.SharedInformerFactory) {
	shared.of[factory] = t
	context.AfterFunc(ctx, func() {
		shared.Lock()
		defer shared.Unlock()
		delete(shared.of, factory)
	})
}

// Give has For return tenants whose Partitions and Allocations never change, for simulations, until the context ends. Nobody computes an order
// for them: pods have the nodes of their partition, and no position.
func Give(ctx context.Context, factory informers.SharedInformerFactory, partitions []*allocations.Partition, all []*allocations.Allocation) {
	t := Fixed(factory, "", func(map[string]*corev1.Pod) {}, partitions, all)
	shared.Lock()
	defer shared.Unlock()
	t.shareLocked(ctx, factory)
}

// Fixed are tenants whose Partitions and Allocations never change, for tests. Their pods are put in order by Compute alone, which has activate put
// them into the queue.
func Fixed(factory informers.SharedInformerFactory, scheduler string, activate func(map[string]*corev1.Pod), partitions []*allocations.Partition, all []*allocations.Allocation) *Tenants {
	t := newTenants(factory, activate)
	for k := range kinds {
		t.of[k] = optionalkind.Known()
	}
	t.schedulers[scheduler] = true
	t.claims = allocations.NewTree(partitions, all).Claims(t.labelsOf)
	t.order = t.claims.Arrange(allocations.Cluster{})
	return t
}

func newTenants(factory informers.SharedInformerFactory, activate func(map[string]*corev1.Pod)) *Tenants {
	register()
	core := factory.Core().V1()
	t := &Tenants{
		pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), namespaces: core.Namespaces().Lister(), activate: activate,
		changed: make(chan struct{}, 1), schedulers: make(map[string]bool),
		partitions: make(map[string]*allocations.Partition), allocations: make(map[string]*allocations.Allocation),
		windows: make(map[string]*window), turns: make(map[types.UID]turn),
		held: make(map[types.UID]*corev1.Pod), retry: make(map[types.UID]*corev1.Pod), tried: make(map[types.UID]uint64),
		reserved: make(map[types.UID]reservation), evicted: make(map[types.UID]Evicted), deleted: make(map[types.UID]bool),
	}
	t.of[ofPartitions] = optionalkind.New(noun, placementv1alpha1.PartitionResource, handler(t, t.partitions, allocations.DecodePartition))
	t.of[ofAllocations] = optionalkind.New(noun, placementv1alpha1.AllocationResource, handler(t, t.allocations, allocations.DecodeAllocation))
	t.claims = allocations.NewTree(nil, nil).Claims(t.labelsOf)
	t.order = t.claims.Arrange(allocations.Cluster{})
	return t
}

// labelsOf returns the labels of a namespace.
func (t *Tenants) labelsOf(name string) (labels.Set, bool) {
	namespace, err := t.namespaces.Get(name)
	if err != nil {
		return nil, false
	}
	return namespace.Labels, true
}

// Err says why it is not known whether pods are of allocations, nil if it is.
func (t *Tenants) Err() error {
	for _, of := range t.of {
		if err := of.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Claims returns which allocation pods are of now. The serial is another one for each tree of Partitions and Allocations.
func (t *Tenants) Claims() (claims *allocations.Claims, serial uint64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.claims, t.serial
}

// Order returns the order as it was computed last. The version is another one whenever somebody may find a place who did not.
func (t *Tenants) Order() (order *allocations.Order, version uint64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.order, t.version
}
