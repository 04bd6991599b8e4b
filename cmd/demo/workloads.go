// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/evenness"
)

const rackLabel = "example.com/rack"

// workload is one file of manifests/examples, what it asks for said a second time
// and independently of the scheduler, and how many pods it has in each act.
type workload struct {
	file string
	// kind is "" for pods that nobody replaces.
	kind, name string
	selector   string
	about      string
	levels     []evenness.Level
	// created is the number of pods the file asks for; the others are 0 for
	// workloads that are only created.
	created, scaled, cordoned, returned int
}

var (
	byZone = evenness.Level{Name: corev1.LabelTopologyZone}
	byRack = evenness.Level{Name: rackLabel}
	// topology is what drawings show, whatever a workload asks for.
	topology = []evenness.Level{byZone, byRack}
)

// workloads in the order in which they are drawn.
var workloads = []workload{
	{
		file: "deployment-spread.yaml", kind: deployment, name: "web", selector: "app=web",
		about: "spread over zones, then racks", levels: []evenness.Level{byZone, byRack},
		created: 26, scaled: 40, cordoned: 49, returned: 60,
	},
	{
		file: "deployment-schedule-anyway.yaml", kind: deployment, name: "api", selector: "app=api",
		about: "no annotation: ScheduleAnyway constraints over zone and host", levels: []evenness.Level{byZone},
		created: 14, scaled: 23, cordoned: 30, returned: 40,
	},
	{
		file: "deployment-weights.yaml", kind: deployment, name: "ingest", selector: "app=ingest",
		about: "70 to zone-a, 30 to zone-b", levels: []evenness.Level{{Name: corev1.LabelTopologyZone, Weights: map[string]int64{"zone-a": 70, "zone-b": 30}}},
		created: 10, scaled: 20, cordoned: 24, returned: 40,
	},
	{
		file: "deployment-pack.yaml", kind: deployment, name: "cache", selector: "app=cache",
		about: "packed into one rack, spread over its nodes", levels: []evenness.Level{{Name: rackLabel, Pack: true}},
		created: 6, scaled: 9, cordoned: 10, returned: 12,
	},
	{
		file: "statefulset.yaml", kind: statefulSet, name: "db", selector: "app=db",
		about: "StatefulSet over zones, then racks", levels: []evenness.Level{byZone, byRack},
		created: 5, scaled: 7, cordoned: 9, returned: 12,
	},
	{
		file: "job.yaml", kind: job, name: "render", selector: "app=render",
		about: "Job over zones", levels: []evenness.Level{byZone},
		created: 9,
	},
	{
		file: "pods.yaml", name: "runners", selector: "app=runners",
		about: "bare pods under one label, over zones", levels: []evenness.Level{byZone},
		created: 4,
	},
}

const (
	deployment  = "Deployment"
	statefulSet = "StatefulSet"
	job         = "Job"
)

// lasting are the workloads that later acts scale and roll.
func lasting() []workload {
	var some []workload
	for _, w := range workloads {
		if w.scaled > 0 {
			some = append(some, w)
		}
	}
	return some
}
