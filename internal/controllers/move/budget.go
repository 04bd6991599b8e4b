// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"

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

// Budget is how many Moves more may be made: at once, and of a Deployment no more than it may have pods too many.
type Budget struct {
	left  int
	bySet map[string]int
}

// BudgetOf returns what a bound leaves beside the Moves that there are.
func BudgetOf(atOnce int, moves []placementv1alpha1.Move) *Budget {
	b := &Budget{atOnce, make(map[string]int)}
	for i := range moves {
		if Busy(&moves[i]) {
			b.take(moves[i].Spec.ReplicaSet.UID)
		}
	}
	return b
}

func (b *Budget) take(set string) {
	b.left--
	b.bySet[set]++
}

// Take notes a Move that has been made.
func (b *Budget) Take(set *appsv1.ReplicaSet) { b.take(string(set.UID)) }

// Spent reports that no more may be made at all.
func (b *Budget) Spent() bool { return b.left <= 0 }

// SpentFor reports that no more may be made for a Deployment.
func (b *Budget) SpentFor(set *appsv1.ReplicaSet, deployment *appsv1.Deployment) bool {
	return b.Spent() || b.bySet[string(set.UID)] >= Surge(deployment)
}
