// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load says what the benchmark asks of a scheduler: which nodes there are,
// which pods lie on them, and which pods come, in which order. It is pure: the same
// workload gives the same objects, whichever scheduler they are for.
package load

import (
	"fmt"
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
	// Groups is how many Deployments the pods belong to, PerGroup how many pods each has.
	Groups, PerGroup int
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
	// Crowd is how many pods of others lie on every node from the beginning.
	Crowd int
	// Churn has nodes closed and opened, and bound pods deleted, while pods come.
	Churn bool
}

// Scales are the sizes of the whole benchmark, by name: the number of nodes.
var Scales = map[string]int{"tiny": 24, "small": 200, "default": 5000, "huge": 20000}

// Crowds are the pods on every node in the rows called Crowded.
var Crowds = []int{10, 30, 60, 100}

var (
	zoneHost = []string{corev1.LabelTopologyZone, corev1.LabelHostname}
	// The names of Kubernetes, and one that is everybody's own.
	zoneRackHost       = []string{corev1.LabelTopologyZone, RackLabel, corev1.LabelHostname}
	regionZoneRackHost = []string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone, RackLabel, corev1.LabelHostname}
)

// Workloads are the rows for a number of nodes, in the order in which they are run.
func Workloads(nodes int) []Workload {
	// Half as many pods as nodes: more make the figures no steadier, only the hours longer.
	group := max(nodes/20, 2)
	rows := []Workload{
		{Name: "Basic", About: "ten Deployments that ask for nothing", Groups: 10, PerGroup: group},
		{Name: "Spread2", About: "ten Deployments over zone and host", Groups: 10, PerGroup: group, Levels: zoneHost},
		{Name: "Spread3", About: "ten Deployments over zone, rack and host", Groups: 10, PerGroup: group, Levels: zoneRackHost},
		{Name: "Spread4", About: "ten Deployments over region, zone, rack and host", Groups: 10, PerGroup: group, Levels: regionZoneRackHost},
		{Name: "Interleaved", About: "a hundred Deployments, a pod of each in turn", Groups: 100, PerGroup: max(nodes/100, 2), InTurn: true, Levels: zoneHost},
		{Name: "Drip", About: "one pod at a time, each waited for", Groups: 1, PerGroup: 2 * group, OneByOne: true, Levels: zoneRackHost},
		{Name: "Selective", About: "a node selector that admits one node in 20", Groups: 10, PerGroup: group, Selective: true, Levels: zoneHost},
		{Name: "HostPort", About: "one pod a node, until every node has one", Groups: 1, PerGroup: nodes, HostPort: true, Levels: zoneHost},
		{Name: "Unschedulable", About: "every second pod fits nowhere", Groups: 10, PerGroup: max(nodes/25, 2), InTurn: true, Misfits: true, Levels: zoneHost},
		{Name: "Churn", About: "nodes close and open and pods are deleted meanwhile", Groups: 10, PerGroup: group, Churn: true, Levels: zoneHost},
	}
	for i := range rows {
		rows[i].Nodes = nodes
	}
	// A hundred pods on each of 5,000 nodes would take an hour to lay out. What the row
	// shows is how the cost grows with pods a node, and a fifth of the nodes shows it.
	crowded := max(nodes/5, 12)
	for _, crowd := range Crowds {
		rows = append(rows, Workload{
			Name: CrowdedName(crowd), About: fmt.Sprintf("%d pods on each of a fifth of the nodes", crowd),
			Nodes: crowded, Groups: 10, PerGroup: max(crowded/10, 2), Levels: zoneRackHost, Crowd: crowd,
		})
	}
	return append(rows, Workload{
		Name: "Memory", About: "20 pods on each node, for the peak of memory", Nodes: nodes, Groups: 10, PerGroup: max(nodes/50, 2), Levels: zoneRackHost, Crowd: 20,
	})
}

// CrowdedName is the name of the row with so many pods on every node.
func CrowdedName(crowd int) string { return fmt.Sprintf("Crowded%d", crowd) }

// Choose picks rows by name, in the order of rows. No names choose all.
func Choose(rows []Workload, names []string) ([]Workload, error) {
	if len(names) == 0 {
		return rows, nil
	}
	var known []string
	for _, row := range rows {
		known = append(known, row.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no workload %q: there are %v", name, known)
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(w Workload) bool { return !slices.Contains(names, w.Name) }), nil
}

// Trickles reports that pods come while others are bound. Otherwise all lie in the queue
// before the first is bound.
func (w Workload) Trickles() bool { return w.OneByOne || w.Churn }

// Pods is how many pods come.
func (w Workload) Pods() int { return w.Groups * w.PerGroup }

// Fitting is how many of them have a node to go to.
func (w Workload) Fitting() int {
	fitting := 0
	for g := range w.Groups {
		if w.Fits(g) {
			fitting += w.PerGroup
		}
	}
	return fitting
}

// Fits reports whether the pods of a group have a node to go to.
func (w Workload) Fits(group int) bool { return !w.Misfits || group%2 == 0 }

// Group is the group of the pod that comes as number i.
func (w Workload) Group(i int) int {
	if w.InTurn {
		return i % w.Groups
	}
	return i / w.PerGroup
}

// Judged are the levels that the spread is judged by. The host is left out: below
// the last level, pods are judged by node anyway.
func (w Workload) Judged() []string {
	return slices.DeleteFunc(slices.Clone(w.Levels), func(key string) bool { return key == corev1.LabelHostname })
}
