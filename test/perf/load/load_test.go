// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestWorkloadsFit(t *testing.T) {
	for name, nodes := range Scales {
		seen := sets.New[string]()
		for _, w := range Workloads(nodes) {
			if seen.Has(w.Name) {
				t.Errorf("%s: there are two rows %s", name, w.Name)
			}
			seen.Insert(w.Name)
			admitted := 0
			for _, node := range w.MakeNodes() {
				if w.Admits(node) {
					admitted++
				}
			}
			room := admitted * (podsOfNode - w.Crowd)
			if w.HostPort {
				room = admitted
			}
			if w.Fitting() > room || w.Fitting() == 0 {
				t.Errorf("%s: %s has %d pods to place and room for %d: it would never end", name, w.Name, w.Fitting(), room)
			}
			if w.Selective && nodes >= 200 && admitted*smallPool != nodes {
				t.Errorf("%s: %s admits %d of %d nodes, not 5 %%", name, w.Name, admitted, nodes)
			}
			if w.Misfits && 2*w.Fitting() != w.Pods() {
				t.Errorf("%s: of %s, %d of %d pods fit, not half", name, w.Name, w.Fitting(), w.Pods())
			}
		}
	}
}

func TestNodesAreDealtEvenly(t *testing.T) {
	nodes := Workload{Nodes: 200}.MakeNodes()
	for key, branches := range map[string]int{corev1.LabelTopologyRegion: 2, corev1.LabelTopologyZone: 6, RackLabel: 60, corev1.LabelHostname: 200} {
		counts := map[string]int{}
		for _, node := range nodes {
			counts[node.Labels[key]]++
		}
		var sizes []int
		for _, count := range counts {
			sizes = append(sizes, count)
		}
		if len(counts) != branches || slices.Max(sizes)-slices.Min(sizes) > 1 {
			t.Errorf("%s has %d values with %d to %d nodes, want %d values that differ by one", key, len(counts), slices.Min(sizes), slices.Max(sizes), branches)
		}
	}
}

// What users write today, and the same for all schedulers but for the name.
func TestPodsAreTheSameForAll(t *testing.T) {
	for _, w := range Workloads(24) {
		names := sets.New[string]()
		groups := map[int]int{}
		for i := range w.Pods() {
			owner := ReplicaSet(w.Group(i))
			owner.UID = "uid"
			pod, other := w.MakePod(i, "one", owner), w.MakePod(i, "other", owner)
			other.Spec.SchedulerName = "one"
			if !equality.Semantic.DeepEqual(pod, other) {
				t.Fatalf("%s: pod %d is another one for another scheduler", w.Name, i)
			}
			if !strings.HasPrefix(pod.Name, owner.Name+"-") || len(pod.Annotations) > 0 {
				t.Fatalf("%s: pod %d is %s of %s with annotations %v", w.Name, i, pod.Name, owner.Name, pod.Annotations)
			}
			names.Insert(pod.Name)
			groups[w.Group(i)]++
			if len(pod.Spec.TopologySpreadConstraints) != len(w.Levels) {
				t.Fatalf("%s: pod %d has %d constraints for the levels %v", w.Name, i, len(pod.Spec.TopologySpreadConstraints), w.Levels)
			}
			for l, c := range pod.Spec.TopologySpreadConstraints {
				if c.TopologyKey != w.Levels[l] || c.WhenUnsatisfiable != corev1.ScheduleAnyway {
					t.Fatalf("%s: pod %d has %v for the level %s", w.Name, i, c, w.Levels[l])
				}
			}
		}
		if len(names) != w.Pods() {
			t.Errorf("%s: %d pods have %d names", w.Name, w.Pods(), len(names))
		}
		for group := range w.Groups {
			if groups[group] != w.PerGroup {
				t.Errorf("%s: group %d has %d pods, want %d", w.Name, group, groups[group], w.PerGroup)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	rows := Workloads(24)
	if all, err := Choose(rows, nil); err != nil || len(all) != len(rows) {
		t.Errorf("no names choose %d of %d rows, %v", len(all), len(rows), err)
	}
	two, err := Choose(rows, []string{"Drip", "Basic"})
	if err != nil || len(two) != 2 || two[0].Name != "Basic" || two[1].Name != "Drip" {
		t.Errorf("two names choose %v, %v", two, err)
	}
	if _, err := Choose(rows, []string{"Spread5"}); err == nil || !strings.Contains(err.Error(), `"Spread5"`) || !strings.Contains(err.Error(), "Spread4") {
		t.Errorf("a name that is none: %v", err)
	}
}
