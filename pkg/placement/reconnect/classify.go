// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconnect says what is to become of pods whose nodes fall silent and come back: into which set each falls, and which of a
// pod and its replacement stays. The sets and their order are Nomad's, of which the rules are re-tested here and not copied.
package reconnect

import "time"

// Set is what is to become of a pod.
type Set string

// The sets.
const (
	// Untouched pods stay as they are.
	Untouched Set = "Untouched"
	// Reconnecting pods were not heard of, and are again: one of a pod and its replacement is to go.
	Reconnecting Set = "Reconnecting"
	// Ignored pods are on their way out already.
	Ignored Set = "Ignored"
	// Migrating pods are to be replaced where they are, because somebody wants their nodes.
	Migrating Set = "Migrating"
	// Lost pods are to be replaced, and are not waited for.
	Lost Set = "Lost"
	// Disconnecting pods are to be replaced, and may come back.
	Disconnecting Set = "Disconnecting"
	// Expiring pods were waited for, and are lost now.
	Expiring Set = "Expiring"
)

// Status is that of a pod, as it was heard of last.
type Status int

// The statuses.
const (
	Pending Status = iota
	Running
	Succeeded
	Failed
	// Unknown is for a pod that is said to be unknown, because its node does not answer.
	Unknown
)

// NodeState is that of a pod's node.
type NodeState int

// The states.
const (
	Ready NodeState = iota
	// Silent nodes do not answer, and are waited for.
	Silent
	// Down nodes do not answer, and are not waited for.
	Down
	// Starting nodes have not been ready yet.
	Starting
	// Gone nodes are deleted.
	Gone
)

// Pod is what the set of a pod depends on.
type Pod struct {
	Status Status
	// Ending: somebody has asked for its end.
	Ending bool
	// UnknownSince is when the pod was said to be unknown, if that is the last that was said of it, also where it has been heard of
	// again since. It is zero for others.
	UnknownSince time.Time
	// Migrate: it is to be replaced. Kept: what has ended is not to be replaced.
	Migrate, Kept bool
	// Canary: it tries a new revision.
	Canary bool
	Node   NodeState
	// LostAfter is how long a pod on a silent node is waited for, 0 for not at all.
	LostAfter time.Duration
	// NotReplaced: while it is waited for no other takes its place.
	NotReplaced bool
}

// Classify returns the set of a pod. The first rule that holds decides (vector NV14).
func Classify(p Pod, now time.Time) Set {
	returns := !p.UnknownSince.IsZero() && (p.Status == Unknown || p.Status == Running || p.Status == Failed)
	ended := p.Ending || p.Status == Succeeded || p.Status == Failed
	switch {
	case returns && !p.Ending && p.Status == Failed:
		return Reconnecting
	case p.Ending && !returns && p.Kept:
		return Untouched
	case p.Ending && !returns:
		return Ignored
	case ended && !returns && p.Canary && p.Migrate:
		return Migrating
	case ended && !returns:
		return Untouched
	case p.Status == Unknown && p.LostAfter > 0 && !p.UnknownSince.IsZero() && !now.Before(p.UnknownSince.Add(p.LostAfter)):
		return Expiring
	case returns && p.Status == Failed && p.Ending:
		return Ignored
	case p.Node == Silent:
		return onSilentNode(p)
	case p.Migrate:
		return Migrating
	case p.Node == Ready && returns:
		return Reconnecting
	case p.Node == Gone:
		return Lost
	case p.Node == Down:
		return onDownNode(p)
	}
	return Untouched
}

func onSilentNode(p Pod) Set {
	switch {
	case p.Status == Unknown:
		return Untouched // it is waited for already
	case p.Status == Pending, p.LostAfter == 0:
		return Lost
	}
	return Disconnecting
}

func onDownNode(p Pod) Set {
	switch {
	case p.NotReplaced && p.Status == Unknown:
		return Untouched
	case p.NotReplaced && p.Status == Running:
		return Disconnecting
	}
	return Lost
}
