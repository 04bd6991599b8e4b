// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load says what the benchmark asks of a scheduler: which nodes there are,
// which pods lie on them, and which pods come, in which order. It is pure: the same
// workload gives the same objects, whichever scheduler they are for.
package load

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// RackLabel is the level below the zone, which Kubernetes has no name for.
const RackLabel = "example.com/rack"

// Workload is one row of the benchmark.
type Workload struct {
	// Name is the row's name, About what it is for.
	Name, About string
	// Nodes is how many there are.
	Nodes int
	// Beside is the row that this one is compared with, "" for none. A scheduler runs the
	// two in one world, one after the other.
	Beside string
	// Rounds is how often it is measured at the least: more than is asked for where one round says too little.
	Rounds int
	// Groups is how many Deployments the pods belong to, PerGroup how many pods each has.
	Groups, PerGroup int
	// Backlog is how many pods there are in all, where they do not go into the groups evenly:
	// they come in turn, and PerGroup says nothing.
	Backlog int
	// InTurn has the pods of the groups come in turn. Otherwise one group follows the other.
	InTurn bool
	// OneByOne has each pod come when the one before is bound. Otherwise all are there from the beginning.
	OneByOne bool
	// Levels are the node labels that the pods are to be spread over, in their order.
	Levels []string
	// Selective pods run in the small pool only: one node in 20.
	Selective bool
	// HostPort has every pod hold the same port of its node.
	HostPort bool
	// Misfits has every second group fit on no node at all.
	Misfits bool
	// DeepNodes have a label for each of the DeepLevels.
	DeepNodes bool
	// Mixed has nodes and pods of three sizes.
	Mixed bool
	// Claims has every pod claim a volume that is made once its node is known.
	Claims bool
	// Apart has every pod refuse nodes with a pod of its group, by required anti-affinity.
	Apart bool
	// Hard has the spread over zones be a DoNotSchedule constraint as well.
	Hard bool
	// Limited has at most one pod of a group be on a node, and a few in a rack, by domain limits.
	Limited bool
	// Allocated has the pods of each group be of an allocation of their own, for the scheduler that knows such.
	Allocated bool
	// Attack is what another tenant does meanwhile.
	Attack Attack
	// Crowd is how many pods of others lie on every node from the beginning.
	Crowd int
	// Controller has Espalier's controller run beside, as it does in a cluster that has it installed; Arbiter has it check each binding.
	Controller, Arbiter bool
	// NullWebhook has each binding allowed by a webhook that does not look.
	NullWebhook bool
	// Unannounced has our scheduler write no event for a pod that is bound.
	Unannounced bool
	// Churn has nodes closed and opened, and bound pods deleted, while pods come.
	Churn bool
	// Unrecorded has our scheduler bind pods without the record of how their nodes were chosen.
	Unrecorded bool
	// ScaleDownAny has our scheduler bind pods without deletion costs.
	ScaleDownAny bool
}

// Trickles reports that pods come while others are bound. Otherwise all lie in the queue
// before the first is bound.
func (w Workload) Trickles() bool { return w.OneByOne || w.Churn }

// Pods is how many pods come.
func (w Workload) Pods() int {
	if w.Backlog > 0 {
		return w.Backlog
	}
	return w.Groups * w.PerGroup
}

// Fitting is how many of them have a node to go to.
func (w Workload) Fitting() int {
	fitting := 0
	for i := range w.Pods() {
		if w.Fits(w.Group(i)) {
			fitting++
		}
	}
	return fitting
}

// Fits reports whether the pods of a group have a node to go to.
func (w Workload) Fits(group int) bool { return !w.Misfits || group%2 == 0 }

// Group is the group of the pod that comes as number i.
func (w Workload) Group(i int) int {
	if w.InTurn || w.Backlog > 0 {
		return i % w.Groups
	}
	return i / w.PerGroup
}

// Judged are the levels that the spread is judged by. The host is left out: below
// the last level, pods are judged by node anyway.
func (w Workload) Judged() []string {
	return slices.DeleteFunc(slices.Clone(w.Levels), func(key string) bool { return key == corev1.LabelHostname })
}
