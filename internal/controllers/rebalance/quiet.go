// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// quiet is since when nothing has happened to Deployments. It is not in the API: a controller that has just begun waits once more.
type quiet map[types.UID]state

type state struct {
	generation int64
	since      time.Time
	seen       time.Time
}

// look notes a Deployment as it is, and returns how long it has been so: 0 while it is at work.
func (q quiet) look(d *appsv1.Deployment, now time.Time) time.Duration {
	if !settled(d) {
		delete(q, d.UID)
		return 0
	}
	s, known := q[d.UID]
	if !known || s.generation != d.Generation {
		s = state{generation: d.Generation, since: now}
	}
	s.seen = now
	q[d.UID] = s
	return now.Sub(s.since)
}

// forget drops what has not been looked at for a while.
func (q quiet) forget(before time.Time) {
	for uid, s := range q {
		if s.seen.Before(before) {
			delete(q, uid)
		}
	}
}

// settled reports that a Deployment has all pods that it wants, of its newest revision and ready, and no others.
func settled(d *appsv1.Deployment) bool {
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	s := &d.Status
	return !d.Spec.Paused && d.DeletionTimestamp == nil && s.ObservedGeneration >= d.Generation &&
		s.Replicas == wanted && s.UpdatedReplicas == wanted && s.ReadyReplicas == wanted
}
