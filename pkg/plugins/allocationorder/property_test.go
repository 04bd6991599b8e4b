// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "50"})
	metrics.Register()
	m.Run()
}

func cpuOf(p *corev1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().Value() }

// drawRig draws nodes, allocations, and pods of which most run. Room is what is free of each node, in CPUs.
func drawRig(t *testing.T, rt *rapid.T) (r *rig, room map[string]int64) {
	r, room = newRig(t), make(map[string]int64)
	nodes := names("n", rapid.IntRange(1, 3).Draw(rt, "nodes"))
	for _, n := range nodes {
		room[n] = rapid.Int64Range(3, 8).Draw(rt, "cpu")
		r.node(n, room[n])
	}
	teams := names("team", rapid.IntRange(1, 3).Draw(rt, "teams"))
	for _, team := range teams {
		r.allocation(team, rapid.Int64Range(0, 5).Draw(rt, "reserved"))
	}
	for _, name := range names("pod", rapid.IntRange(3, 9).Draw(rt, "pods")) {
		team, cpu := rapid.SampledFrom(append(teams, "none")).Draw(rt, "team"), rapid.Int64Range(1, 5).Draw(rt, "request")
		on := ""
		if n := rapid.SampledFrom(nodes).Draw(rt, "node"); room[n] >= cpu {
			on, room[n] = n, room[n]-cpu
		}
		r.pod(name, team, cpu, on, priority(fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "priority"))))
	}
	return r.start(), room
}

// Of any pod that fits nowhere: only pods that come after it go, it fits on its node then, and would not if one of them stayed. If nobody
// goes, it fits nowhere even without all that come after it. This is with the filters of the profile, and on the scheduler's snapshot.
func TestPropertyEvictions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r, room := drawRig(t, rt)
		order, _ := r.tenants.Order()
		for _, preemptor := range r.pods {
			at, ok := order.Place(preemptor)
			if !ok || preemptor.Spec.NodeName != "" {
				continue
			}
			r.client.ClearActions()
			fits, result, status := r.try(preemptor)
			if len(fits) > 0 {
				continue
			}
			goes := make(map[string]int64)
			for _, p := range r.assigned() {
				if place, ok := order.Place(p); ok && place.Index > at.Index {
					goes[p.Spec.NodeName] += cpuOf(p)
				}
			}
			if !status.IsSuccess() {
				for n, cpu := range goes {
					if room[n]+cpu >= cpuOf(preemptor) {
						rt.Fatalf("nobody makes way for %s (%v), and it would fit on %s if those after it went", preemptor.Name, status, n)
					}
				}
				continue
			}
			checkEvicted(rt, r, at, preemptor, room[result.NominatedNodeName], result.NominatedNodeName)
			return // the next one would find those that are leaving
		}
	})
}

// checkEvicted checks who was evicted for a pod on a node with so much room.
func checkEvicted(rt *rapid.T, r *rig, at allocations.Place, preemptor *corev1.Pod, room int64, node string) {
	gone := r.deleted()
	var victims []*corev1.Pod
	for _, p := range r.assigned() {
		if !slices.Contains(gone, p.Name) {
			continue
		}
		if place, ok := r.placeOf(p); !ok || place.Index <= at.Index || p.Spec.NodeName != node {
			rt.Fatalf("%s on %s is evicted for %s on %s, which does not come before it", p.Name, p.Spec.NodeName, preemptor.Name, node)
		}
		room += cpuOf(p)
		victims = append(victims, p)
	}
	if len(victims) != len(gone) || room < cpuOf(preemptor) {
		rt.Fatalf("%s does not fit on %s without %q", preemptor.Name, node, gone)
	}
	for _, p := range victims {
		if room-cpuOf(p) >= cpuOf(preemptor) {
			rt.Fatalf("%s is evicted in vain for %s", p.Name, preemptor.Name)
		}
	}
}

func (r *rig) placeOf(p *corev1.Pod) (allocations.Place, bool) {
	order, _ := r.tenants.Order()
	return order.Place(p)
}
