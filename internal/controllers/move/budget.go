// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Busy reports that a Move is about to replace or to evict a pod. One that waits for a node is not: its replacement is there, and it
// may wait for hours.
func Busy(m *placementv1alpha1.Move) bool {
	return !m.Status.Phase.Ended() && m.Status.Phase != placementv1alpha1.MoveWaiting
}

// ByPolicy is the mode of those who make Moves only for pods whose policies ask for it.
const ByPolicy = "ByPolicy"

// ValidateAtOnce returns what is wrong with a bound of Moves at once, nil if nothing is.
func ValidateAtOnce(n int) error {
	if n < 1 || n > 1000 {
		return fmt.Errorf("%d is no bound of Moves at once: use 1 to 1000", n)
	}
	return nil
}

// Count says which Moves a controller has counted: all that were made in this process before it was taken. Several controllers make Moves at the
// same time, and together they would exceed the bounds that each of them keeps. So a controller takes one before it lists the Moves, and with
// it makes none after another controller has.
type Count struct{ of int }

// making guards made, which is how many Moves this process has made. It is held while one is made, and not while a controller looks for pods:
// that takes seconds in large clusters.
var (
	making sync.Mutex
	made   int
)

// NewCount returns that of all Moves made so far.
func NewCount() *Count {
	making.Lock()
	defer making.Unlock()
	return &Count{made}
}

// Stale reports that another controller has made a Move since the count was taken: with this one none can be made any more.
func (c *Count) Stale() bool {
	making.Lock()
	defer making.Unlock()
	return c.stale()
}

func (c *Count) stale() bool { return c.of != made }

// Budget is how many Moves more may be made: at once, and of an owner no more than it may have pods too many, or one.
type Budget struct {
	left    int
	byOwner map[string]int
}

// BudgetOf returns what a bound leaves beside the Moves that there are.
func BudgetOf(atOnce int, moves []placementv1alpha1.Move) *Budget {
	b := &Budget{atOnce, make(map[string]int)}
	for i := range moves {
		if Busy(&moves[i]) {
			b.take(moves[i].Spec.Owner().UID)
		}
	}
	return b
}

func (b *Budget) take(owner string) {
	b.left--
	b.byOwner[owner]++
}

// Take notes a Move that has been made of a pod of a ReplicaSet or of a StatefulSet.
func (b *Budget) Take(owner client.Object) { b.take(string(owner.GetUID())) }

// Spent reports that no more may be made at all.
func (b *Budget) Spent() bool { return b.left <= 0 }

// SpentFor reports that no more may be made for an owner. Pods that are evicted first go one at a time.
func (b *Budget) SpentFor(o *Owner) bool {
	most := 1
	if !o.EvictFirst {
		most = Surge(o.Deployment)
	}
	return b.Spent() || b.byOwner[string(o.direct().GetUID())] >= most
}

// TakeFor notes a Move that has been made of a pod of an owner.
func (b *Budget) TakeFor(o *Owner) { b.Take(o.direct()) }
