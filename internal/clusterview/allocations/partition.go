// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// defaultReservablePercent is that of a Partition that the API server has not given one.
const defaultReservablePercent = 75

// Object is what both kinds have in common. It is never modified.
type Object struct {
	Name       string
	Generation int64
	uid        types.UID
	created    time.Time
	// reason and err say what cannot be read of it, by the reason of a condition. Err is nil if all can.
	reason string
	err    error
}

// objectOf reads what both kinds have in common.
func objectOf(meta *metav1.ObjectMeta) Object {
	return Object{Name: meta.Name, Generation: meta.Generation, uid: meta.UID, created: meta.CreationTimestamp.Time}
}

// refuse notes the first thing that cannot be read.
func (o *Object) refuse(err error) {
	if o.err == nil && err != nil {
		o.reason, o.err = placementv1alpha1.ReasonInvalid, err
	}
}

// older orders objects of a kind by who comes first where two want the same: the older, and of two of the same second
// that whose name is first.
func (o *Object) older(p *Object) int {
	return cmp.Or(o.created.Compare(p.created), cmp.Compare(o.Name, p.Name))
}

// Common returns what both kinds have in common.
func (o *Object) Common() *Object { return o }

// Invalid says what cannot be read of the object, nil if all can. Such a Partition has no nodes, and such an Allocation is not accepted.
func (o *Object) Invalid() error { return o.err }

// Same reports whether p is the same object with the same spec.
func (o *Object) Same(p *Object) bool { return o.uid == p.uid && o.Generation == p.Generation }

// Partition is a Partition, read.
type Partition struct {
	Object
	// ReservablePercent is how much of it may be reserved.
	ReservablePercent int32
	// MaxLease is the longest lease that a pod may have, 0 for any.
	MaxLease time.Duration
	byLevel  bool
	// nodes selects its nodes, and namespaces those whose pods may be of it.
	nodes, namespaces labels.Selector
}

// ReadPartition reads a Partition. One whose selectors cannot be read has no nodes.
func ReadPartition(in *placementv1alpha1.Partition) *Partition {
	p := &Partition{
		Object: objectOf(&in.ObjectMeta), ReservablePercent: cmp.Or(in.Spec.ReservablePercent, defaultReservablePercent),
		byLevel: in.Spec.RankBy == placementv1alpha1.RankByLevel, namespaces: labels.Everything(),
	}
	p.nodes = p.selector("spec.nodeSelector", &in.Spec.NodeSelector)
	if in.Spec.NamespaceSelector != nil {
		p.namespaces = p.selector("spec.namespaceSelector", in.Spec.NamespaceSelector)
	}
	if in.Spec.MaxLeaseSeconds != nil {
		p.MaxLease = clusterview.Seconds(*in.Spec.MaxLeaseSeconds) // more than the type holds would bound nothing
	}
	return p
}

// DecodePartition reads a Partition as the API server gives it. One that cannot be decoded has no nodes, and says so.
func DecodePartition(object *unstructured.Unstructured) *Partition {
	in, err := decode[placementv1alpha1.Partition](object)
	p := ReadPartition(in)
	if err != nil {
		p.nodes = labels.Nothing()
		p.refuse(err)
	}
	return p
}
