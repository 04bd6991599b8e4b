// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"
	"testing"
)

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {espalier.dev/placement: spread=topology.kubernetes.io/zone}
    spec:
      schedulerName: espalier-scheduler
      containers:
      - name: web
        image: web
        resources: {limits: {cpu: "1"}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}}
`

func (c *cluster) manifest(text string) *Manifest {
	c.Helper()
	m, err := ReadManifest(strings.NewReader(text), "ns")
	if err != nil {
		c.Fatal(err)
	}
	return m
}

func (c *cluster) simulate(manifest string, replicas int, change Change) *Simulation {
	c.Helper()
	m := &Manifest{}
	if manifest != "" {
		m = c.manifest(manifest)
	}
	s, err := Simulate(c.Context(), &c.Snapshot, shipped(c), change, m, replicas, func(int, int) {})
	if err != nil {
		c.Fatal(err)
	}
	return s
}

// zonesOf counts placed pods by the zone that their node's name begins with.
func zonesOf(s *Simulation) string {
	n := map[string]int{}
	for _, p := range s.Pods {
		zone, _, _ := strings.Cut(p.Node, "-")
		n[zone]++
	}
	return fmt.Sprint(n)
}

func TestSimulate(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 3)
	c.zone("b", 1)
	s := c.simulate(web, -1, Change{})
	if got := zonesOf(s); got != "map[a:3 b:3]" || fmt.Sprint(s.Ignored) != "[Service]" {
		t.Errorf("six pods go to %s; ignored is %q", got, s.Ignored)
	}
	if len(s.Trees) != 1 || s.Trees[0].All.Pods != 6 {
		t.Errorf("the trees are %+v", s.Trees)
	}
	if got := zonesOf(c.simulate(web, 20, Change{})); got != "map[:4 a:12 b:4]" {
		t.Errorf("20 pods in 16 places go to %s", got)
	}
	if got := zonesOf(c.simulate(web, 4, Change{Cordon: []string{"b-1"}})); got != "map[a:4]" {
		t.Errorf("with zone b cordoned, four pods go to %s", got)
	}
	if got := zonesOf(c.simulate(web, 9, Change{Add: []AddNodes{{2, "a-1", map[string]string{"topology.kubernetes.io/zone": "c"}}}})); !strings.Contains(got, "b:3") {
		t.Errorf("with two nodes in zone c, nine pods go to %s", got)
	}
}

// The pods of drained nodes go where their workload has the fewest.
func TestSimulateADrain(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 2)
	c.zone("b", 1)
	c.zone("c", 1)
	c.deployment("web", template(), "a-1", "a-1", "b-1", "c-1")
	s := c.simulate("", -1, Change{Drain: []string{"b-1"}})
	if len(s.Pods) != 1 || s.Pods[0].Node != "c-1" {
		t.Errorf("the pod of b-1 becomes %+v, want it on c-1", s.Pods)
	}
}

// What a Deployment of the cluster has already is counted, and not placed again.
func TestSimulateMoreReplicas(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 2)
	c.zone("b", 2)
	first := c.simulate(web, 2, Change{})
	if len(first.Pods) != 2 {
		t.Fatalf("%+v", first.Pods)
	}
	c.deployment("web", *c.manifest(web).Workloads[0].trimmed(), "a-1", "a-2", "a-1")
	s := c.simulate(web, 6, Change{})
	if got := zonesOf(s); got != "map[b:3]" || s.Trees[0].All.Pods != 6 {
		t.Errorf("three more pods go to %s; all are %d: %+v", got, s.Trees[0].All.Pods, s.Pods)
	}
	changed := strings.Replace(web, "image: web", "image: other", 1)
	if s := c.simulate(changed, 4, Change{}); zonesOf(s) != "map[a:2 b:2]" || s.Trees[0].All.Pods != 4 || s.Trees[0].All.All != 7 {
		t.Errorf("four pods of a new revision go to %s; of %d and %d", zonesOf(s), s.Trees[0].All.Pods, s.Trees[0].All.All)
	}
}

// Policies of the manifest are in force, in the place of those of the same name.
func TestSimulateAPolicy(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 2)
	c.zone("b", 2)
	policy := func(strategy string) string {
		return `
---
apiVersion: placement.espalier.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: tiers}
spec: {podSelector: {matchLabels: {app: web}}, mode: Override, levels: [{topologyKey: topology.kubernetes.io/zone` + strategy + `}]}
`
	}
	c.Add(c.manifest(policy("")).Policies[0])
	shares := ", shares: [{value: a, share: 3}, {value: b, share: 1}]"
	if got := zonesOf(c.simulate(web+policy(shares), 4, Change{})); got != "map[a:3 b:1]" {
		t.Errorf("with shares of 3 and 1, four pods go to %s", got)
	}
	if got := zonesOf(c.simulate(web, 4, Change{})); got != "map[a:2 b:2]" {
		t.Errorf("without shares, four pods go to %s", got)
	}
}
