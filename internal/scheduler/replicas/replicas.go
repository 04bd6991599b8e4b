// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas has several replicas of one scheduler place pods at the same time, each those of the
// workloads that it owns. Which these are, and why no two replicas place one workload, is in
// package ownership.
//
//   - replicas.go: what a replica knows of the others, which it learns from their Leases
//   - lock.go: the Lease that it holds itself, by Kubernetes' own leader election
//   - plugin.go: pods of others stay out of the queue
//   - metrics.go
package replicas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/ownership"
)

const (
	// Flag switches it on, by enabling the plugin in all profiles.
	Flag = "active-active"
	// Most is how many replicas are active at most. More stand by. The roles name as many Leases.
	Most = 8
)

// Replicas is what one of them knows of all. It is safe for concurrent use.
type Replicas struct {
	leases coordinationv1client.LeaseInterface
	names  []string // those of the Leases
	leader string   // that of the Lease by which one replica leads, without the flag
	now    func() time.Time

	mu      sync.Mutex         // guards what follows
	on      bool               // the plugin is enabled
	members *ownership.Members // nil before Join
	active  bool               // at the last look
	changed func()             // see OnChange
}

// New returns what is off until the plugin is made.
func New() *Replicas { return &Replicas{now: time.Now, changed: func() {}} }

// On reports whether the plugin is enabled.
func (r *Replicas) On() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on
}

// Join has a scheduler that is not running yet hold one of several Leases, in place of the one that its election is for, and
// follow the others until the context ends.
func (r *Replicas) Join(ctx context.Context, election *leaderelection.LeaderElectionConfig) error {
	if election == nil {
		return errors.New("replicas that are active at once know each other by their Leases: set leaderElection.leaderElect to true, or leave --" + Flag + " away")
	}
	one, ok := election.Lock.(*resourcelock.LeaseLock)
	if !ok {
		return fmt.Errorf("the lock of the election is a %T and no Lease: this is a fault of the program; leave --%s away until it is fixed", election.Lock, Flag)
	}
	register()
	r.leases = one.Client.Leases(one.LeaseMeta.Namespace)
	r.leader = one.LeaseMeta.Name
	for i := range Most {
		r.names = append(r.names, fmt.Sprintf("%s-%d", one.LeaseMeta.Name, i))
	}
	r.mu.Lock()
	r.members = ownership.NewMembers(one.LockConfig.Identity, election.RetryPeriod)
	r.mu.Unlock()
	election.Lock = newLock(r, one)
	go wait.UntilWithContext(ctx, r.look, election.RetryPeriod/2)
	return nil
}

// Identity is that of this replica, "" before it joins.
func (r *Replicas) Identity() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.members == nil {
		return ""
	}
	return r.members.Holder()
}

// Owns reports whether a pod is this replica's to place.
func (r *Replicas) Owns(pod *corev1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ownsLocked(pod)
}

func (r *Replicas) ownsLocked(pod *corev1.Pod) bool {
	return r.members != nil && r.members.Owns(clusterview.OwnershipKey(pod), r.now())
}

// Begin is called before a pod is bound, and end when that is through. It is false for one that another replica
// places. A replica that comes is not acknowledged before what was begun without it has ended.
func (r *Replicas) Begin(pod *corev1.Pod) (end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ownsLocked(pod) {
		return nil, false
	}
	generation := r.members.Begin()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.members.End(generation)
	}, true
}

// OnChange has a function called when other pods than before are this replica's.
func (r *Replicas) OnChange(changed func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = changed
}

// look lists the Leases.
func (r *Replicas) look(ctx context.Context) {
	leases, err := r.list(ctx)
	if err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot see which other replicas there are; those that join wait for this one")
		}
		return
	}
	now := r.now()
	r.mu.Lock()
	changed := r.members.Observe(leases, now)
	active := r.members.Active(now)
	changed, r.active = changed || active != r.active, active
	names, awaited, tell := r.members.Names(), r.members.Awaited(), r.changed
	r.mu.Unlock()
	show(len(names), active)
	if changed {
		klog.FromContext(ctx).Info("The replicas that place pods have changed", "leases", names, "placing", active, "waitingFor", awaited)
		tell()
	}
}

// list asks the API server itself: what a cache remembers may be from before our own Lease.
func (r *Replicas) list(ctx context.Context) ([]ownership.Lease, error) {
	list, err := r.leases.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the Leases of other replicas: %w", err)
	}
	var leases []ownership.Lease
	for i := range list.Items {
		l := &list.Items[i]
		if leads := l.Name == r.leader; leads || slices.Contains(r.names, l.Name) {
			is := leaseOf(l)
			is.Leads = leads
			leases = append(leases, is)
		}
	}
	return leases, nil
}

func leaseOf(l *coordinationv1.Lease) ownership.Lease {
	is := ownership.Lease{
		Name: l.Name, Holder: ptr.Deref(l.Spec.HolderIdentity, ""), Duration: time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}
	if l.Spec.RenewTime != nil {
		is.Renewed = l.Spec.RenewTime.Time
	}
	if holders := l.Annotations[clusterview.AcknowledgesAnnotation]; holders != "" {
		is.Acknowledges = strings.Split(holders, ",")
	}
	return is
}
