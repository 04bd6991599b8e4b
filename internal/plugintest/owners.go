// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// ReplicaSets is what a lister of ReplicaSets knows, and how often it was asked.
type ReplicaSets struct {
	indexer cache.Indexer
	Asked   int
	// Before, if set, is told of every ask before it is answered.
	Before func(asked int)
	// told are those who watch the ReplicaSets.
	told []*clusterview.Identifier
}

// NewReplicaSets returns a lister of some ReplicaSets.
func NewReplicaSets(known ...*appsv1.ReplicaSet) *ReplicaSets {
	r := &ReplicaSets{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	for _, rs := range known {
		r.Add(rs)
	}
	return r
}

// Add makes a ReplicaSet known.
func (r *ReplicaSets) Add(rs *appsv1.ReplicaSet) {
	_ = r.indexer.Add(rs)
	for _, i := range r.told {
		i.Added.Note(rs.Namespace)
	}
}

// Identifier counts, for one ask of a ReplicaSet is one pod identified.
func (r *ReplicaSets) Identifier() *clusterview.Identifier {
	i := clusterview.NewIdentifier(counting{appslisters.NewReplicaSetLister(r.indexer), r})
	r.told = append(r.told, i)
	return i
}

type counting struct {
	appslisters.ReplicaSetLister
	of *ReplicaSets
}

// ReplicaSets counts that it was asked.
func (c counting) ReplicaSets(namespace string) appslisters.ReplicaSetNamespaceLister {
	c.of.Asked++
	if c.of.Before != nil {
		c.of.Before(c.of.Asked)
	}
	return c.ReplicaSetLister.ReplicaSets(namespace)
}

// Owner is a controller in the notation "apps/v1 ReplicaSet web-1 uid-1".
func Owner(text string) metav1.OwnerReference {
	f := strings.Fields(text)
	return metav1.OwnerReference{APIVersion: f[0], Kind: f[1], Name: f[2], UID: types.UID(f[3]), Controller: new(true)}
}

// ReplicaSet is one in namespace ns.
func ReplicaSet(name, uid string, owners ...metav1.OwnerReference) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), OwnerReferences: owners}}
}

// Pod is p in namespace ns, with owners.
func Pod(p *st.PodWrapper, owners ...string) *corev1.Pod {
	p.Namespace("ns")
	for _, o := range owners {
		p.OwnerReferences = append(p.OwnerReferences, Owner(o))
	}
	return p.Obj()
}
