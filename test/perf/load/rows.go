// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

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

// Rows that others are compared with.
const (
	fewWorkloads = "Workloads60"
	shallow      = "Shallow"
	ordinary     = "Ordinary"
	unchecked    = "Controller"
	nullWebhook  = "NullWebhook"
	refused      = "Refused"
	spread2      = "Spread2"
	scaleDownAny = "ScaleDownAny"
	unallocated  = "Backlog200"
)

// Workloads are the rows for a number of nodes, in the order in which they are run.
func Workloads(nodes int) []Workload {
	// Half as many pods as nodes: more make the figures no steadier, only the hours longer.
	group := max(nodes/20, 2)
	rows := []Workload{
		{Name: "Basic", About: "ten Deployments that ask for nothing", Groups: 10, PerGroup: group},
		{Name: scaleDownAny, About: "ten Deployments over zone and host, and ours writes no deletion costs", Groups: 10, PerGroup: group, Levels: zoneHost, ScaleDownAny: true, Rounds: roundsOfNoisy(nodes)},
		{Name: spread2, About: "the same, and ours writes them, as shipped", Beside: scaleDownAny, Groups: 10, PerGroup: group, Levels: zoneHost, Rounds: roundsOfNoisy(nodes)},
		{Name: "Unrecorded", About: "the same, and ours does not record its decisions", Beside: spread2, Groups: 10, PerGroup: group, Levels: zoneHost, Unrecorded: true, Rounds: roundsOfShort(nodes)},
		{Name: "Spread3", About: "ten Deployments over zone, rack and host", Groups: 10, PerGroup: group, Levels: zoneRackHost},
		{Name: "Spread4", About: "ten Deployments over region, zone, rack and host", Groups: 10, PerGroup: group, Levels: regionZoneRackHost, Rounds: roundsOfShort(nodes)},
		{Name: "Interleaved", About: "a hundred Deployments, a pod of each in turn", Groups: 100, PerGroup: max(nodes/100, 2), InTurn: true, Levels: zoneHost},
		{Name: "Drip", About: "one pod at a time, each waited for", Groups: 1, PerGroup: 2 * group, OneByOne: true, Levels: zoneRackHost, Rounds: roundsOfShort(nodes)},
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
	rows = append(rows, Workload{
		Name: "Memory", About: "20 pods on each node, for the peak of memory", Nodes: nodes, Groups: 10, PerGroup: max(nodes/50, 2), Levels: zoneRackHost, Crowd: 20,
	})
	rows = append(rows, written(nodes)...)
	rows = append(rows, manyWorkloads(nodes)...)
	rows = append(rows, notRemembered(nodes)...)
	rows = append(rows, allocated(nodes)...)
	return append(rows, attacked(nodes)...)
}

// written are the rows that show what the writes of a pod cost: with each binding checked before it is made, by a webhook that does nothing and by
// the arbiter, and without the event. They are
// Spread2 beside a controller that does neither.
func written(nodes int) []Workload {
	row := Workload{Nodes: nodes, Groups: 10, PerGroup: max(nodes/20, 2), Levels: zoneHost, Rounds: roundsOfShort(nodes), Controller: true}
	before, allowed, checked, silent := row, row, row, row
	before.Name, before.About = unchecked, "Spread2 with the controller beside"
	allowed.Name, allowed.About, allowed.Beside, allowed.NullWebhook = nullWebhook, "the same, and a webhook that allows each binding without a look", unchecked, true
	checked.Name, checked.About, checked.Beside, checked.Arbiter = "Arbiter", "the same, and the controller checks each binding", nullWebhook, true
	silent.Name, silent.About, silent.Beside, silent.Unannounced = "Unannounced", "the same, without the event of a bound pod", unchecked, true
	return []Workload{before, allowed, checked, silent}
}

// allocated are the rows that show what an order of all pods costs.
func allocated(nodes int) []Workload {
	row := Workload{Nodes: nodes, Groups: 200, Backlog: max(2*nodes, 200), Levels: zoneHost, Rounds: roundsOfShort(nodes)}
	before, after := row, row
	before.Name, before.About = unallocated, "a backlog of 200 Deployments, twice as many pods as nodes"
	after.Name, after.About, after.Beside, after.Allocated = "Allocations200", "the same, each Deployment of an allocation of its own", unallocated, true
	return []Workload{before, after}
}

// manyWorkloads are the rows that show what a workload costs the others, and what a level
// costs a workload.
func manyWorkloads(nodes int) []Workload {
	var rows []Workload
	for _, groups := range []int{60, 500, 2000} {
		row := Workload{
			Name: fmt.Sprintf("Workloads%d", groups), About: fmt.Sprintf("a backlog of %d Deployments, a pod of each in turn", groups), Beside: fewWorkloads,
			// Every second Deployment of the most has a second pod: one that is alone has nothing to be spread from.
			Groups: groups, Backlog: max(nodes*3/5, groups*3/2), Levels: zoneRackHost, Rounds: roundsOfShort(nodes),
		}
		if row.Name == fewWorkloads {
			row.Beside = ""
		}
		rows = append(rows, row)
	}
	group := max(nodes/50, 2)
	rows = append(rows,
		Workload{Name: shallow, About: "one level, a label that no two nodes have alike", Groups: 10, PerGroup: group, Levels: DeepLevels[:1], DeepNodes: true},
		Workload{Name: "Deep", About: "the same with 15 levels below it", Beside: shallow, Groups: 10, PerGroup: group, Levels: DeepLevels, DeepNodes: true},
		Workload{Name: "Mixed", About: "a hundred Deployments of three sizes, on nodes of three sizes", Groups: 100, PerGroup: max(nodes*3/500, 2), InTurn: true, Levels: zoneRackHost, Mixed: true})
	for i := range rows {
		rows[i].Nodes = nodes
	}
	return rows
}

// notRemembered are the rows of pods whose filters look at more than one node, so that what
// they said of a node does not hold for the next pod.
func notRemembered(nodes int) []Workload {
	row := Workload{Nodes: nodes, Groups: 10, PerGroup: max(nodes/50, 2), Levels: zoneRackHost}
	claims, apart, hard, limited := row, row, row, row
	claims.Name, claims.About, claims.Claims = "Claims", "each pod claims a volume, WaitForFirstConsumer", true
	apart.Name, apart.About, apart.Apart = "AntiAffinity", "no two pods of a Deployment on a host, by required anti-affinity", true
	hard.Name, hard.About, hard.Hard = "DoNotSchedule", "over zones by DoNotSchedule as well", true
	limited.Name, limited.About, limited.Limited = "DomainLimits", "one pod of a Deployment on a host and a few in a rack, by domain limits", true
	return []Workload{claims, apart, hard, limited}
}

// attacked are the rows that show what one tenant can do to the others.
func attacked(nodes int) []Workload {
	row := Workload{Nodes: nodes, Groups: 10, PerGroup: max(nodes/50, 2), Levels: zoneRackHost, Rounds: roundsOfNoisy(nodes)}
	before, misfits, levels, owners := row, row, row, row
	before.Name, before.About = ordinary, "ten Deployments that nobody disturbs"
	misfits.Name, misfits.About, misfits.Beside, misfits.Attack = refused, "the same, and pods of another tenant that fit nowhere", ordinary, Misfits
	levels.Name, levels.About, levels.Beside, levels.Attack = "AttackLevels", "the same, each of those pods with levels of its own", refused, AttackLevels
	owners.Name, owners.About, owners.Beside, owners.Attack = "AttackOwners", "the same, and pods of another tenant whose owner does not exist", ordinary, AttackOwners
	return []Workload{before, misfits, levels, owners}
}

// roundsOfShort is how often rows are measured at the least whose promise is a tenth of what takes a few seconds, or about decisions of
// a fifth of a millisecond, which wait for a collection of garbage now and then: one round varies by more. At the small scales nothing
// is promised.
func roundsOfShort(nodes int) int {
	if nodes < Scales["default"] {
		return 0
	}
	return 5
}

// roundsOfNoisy is how often those are measured whose promise is a tenth of what varies by a tenth from round to round, such as one
// second of processor time, or two runs of a few seconds beside each other: the median of nine varies by less than half of that.
func roundsOfNoisy(nodes int) int {
	if nodes < Scales["default"] {
		return 0
	}
	return 9
}

// Worlds puts together the rows that are measured in one world: a row, those that are compared with it, and those that are
// compared with these.
func Worlds(rows []Workload) [][]Workload {
	var worlds [][]Workload
	of := make(map[string]int)
	for _, row := range rows {
		world, known := of[cmp.Or(row.Beside, row.Name)]
		if !known {
			world, worlds = len(worlds), append(worlds, nil)
			of[cmp.Or(row.Beside, row.Name)] = world // which may not be measured
		}
		of[row.Name] = world
		worlds[world] = append(worlds[world], row)
	}
	return worlds
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
