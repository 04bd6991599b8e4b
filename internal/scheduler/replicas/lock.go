// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/ownership"
)

// lock is the lock of an election for whichever of several Leases is vacant. Once it holds one it asks for no other.
// It is used by one election, which does one thing at a time.
type lock struct {
	replicas *Replicas
	leases   []*resourcelock.LeaseLock
	at       int // the one that is held, or asked for
	held     bool
}

// newLock returns one that asks for the replicas' Leases as another does for its one.
func newLock(r *Replicas, one *resourcelock.LeaseLock) *lock {
	l := &lock{replicas: r}
	for _, name := range r.names {
		meta := metav1.ObjectMeta{Namespace: one.LeaseMeta.Namespace, Name: name}
		l.leases = append(l.leases, &resourcelock.LeaseLock{
			LeaseMeta: meta, Client: acknowledging{one.Client, r}, LockConfig: one.LockConfig,
		})
	}
	return l
}

// Get looks for a vacant Lease unless one is held. One that another replica takes meanwhile is its.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if !l.held {
		leases, err := l.replicas.list(ctx)
		if err != nil {
			return nil, nil, err
		}
		l.at = slices.Index(l.replicas.names, ownership.Vacant(l.replicas.names, leases, l.Identity()))
	}
	return l.leases[l.at].Get(ctx)
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.noteHeld(record, l.leases[l.at].Create(ctx, record))
}

func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.noteHeld(record, l.leases[l.at].Update(ctx, record))
}

func (l *lock) noteHeld(record resourcelock.LeaderElectionRecord, err error) error {
	l.held = l.held || err == nil && record.HolderIdentity == l.Identity()
	return err
}

func (l *lock) RecordEvent(what string) { l.leases[l.at].RecordEvent(what) }
func (l *lock) Identity() string        { return l.leases[l.at].Identity() }
func (l *lock) Describe() string        { return l.leases[l.at].Describe() }

// acknowledging has every Lease that is written name the holders that are acknowledged.
type acknowledging struct {
	coordinationv1client.LeasesGetter
	replicas *Replicas
}

func (a acknowledging) Leases(namespace string) coordinationv1client.LeaseInterface {
	return acknowledgingLeases{a.LeasesGetter.Leases(namespace), a.replicas}
}

type acknowledgingLeases struct {
	coordinationv1client.LeaseInterface
	replicas *Replicas
}

func (a acknowledgingLeases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	a.replicas.acknowledge(lease)
	return a.LeaseInterface.Create(ctx, lease, o)
}

func (a acknowledgingLeases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	a.replicas.acknowledge(lease)
	return a.LeaseInterface.Update(ctx, lease, o)
}

func (r *Replicas) acknowledge(lease *coordinationv1.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, clusterview.AcknowledgesAnnotation, strings.Join(r.members.Acknowledged(), ","))
}
