// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
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
			if w.Apart || w.Limited {
				room = admitted * w.Groups
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
		sizes := slices.Collect(maps.Values(counts))
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
			if !strings.HasPrefix(pod.Name, owner.Name+"-") || (len(pod.Annotations) > 0) != w.Limited {
				t.Fatalf("%s: pod %d is %s of %s with annotations %v", w.Name, i, pod.Name, owner.Name, pod.Annotations)
			}
			names.Insert(pod.Name)
			groups[w.Group(i)]++
			constraints := pod.Spec.TopologySpreadConstraints
			if w.Hard {
				constraints = constraints[:len(constraints)-1]
			}
			if len(constraints) != len(w.Levels) {
				t.Fatalf("%s: pod %d has %d soft constraints for the levels %v", w.Name, i, len(constraints), w.Levels)
			}
			for l, c := range constraints {
				if c.TopologyKey != w.Levels[l] || c.WhenUnsatisfiable != corev1.ScheduleAnyway {
					t.Fatalf("%s: pod %d has %v for the level %s", w.Name, i, c, w.Levels[l])
				}
			}
		}
		if len(names) != w.Pods() {
			t.Errorf("%s: %d pods have %d names", w.Name, w.Pods(), len(names))
		}
		for group := range w.Groups {
			least, most := w.PerGroup, w.PerGroup
			if w.Backlog > 0 {
				least, most = w.Backlog/w.Groups, (w.Backlog+w.Groups-1)/w.Groups
			}
			if groups[group] < least || groups[group] > most {
				t.Errorf("%s: group %d has %d pods, want %d to %d", w.Name, group, groups[group], least, most)
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

// Rows that are compared find the same nodes, and stand beside each other.
func TestWorlds(t *testing.T) {
	rows := Workloads(200)
	worlds := Worlds(rows)
	if got := slices.Concat(worlds...); len(got) != len(rows) || len(worlds) >= len(rows) {
		t.Fatalf("%d rows are %d in %d worlds", len(rows), len(got), len(worlds))
	}
	firsts := sets.New[string]()
	for _, world := range worlds {
		first, names := world[0], sets.New[string]()
		if first.Beside != "" || firsts.Has(first.Name) {
			t.Errorf("a world begins with %s, which stands beside %q", first.Name, first.Beside)
		}
		firsts.Insert(first.Name)
		names.Insert(first.Name)
		for _, row := range world[1:] {
			if !names.Has(row.Beside) || row.Crowd != first.Crowd || !equality.Semantic.DeepEqual(row.MakeNodes(), first.MakeNodes()) {
				t.Errorf("%s is in the world of %s, beside %q, and differs in what it finds there", row.Name, first.Name, row.Beside)
			}
			names.Insert(row.Name)
		}
	}
}

// In each rack there are nodes of all sizes, and the pods fit whatever the order in which they come.
func TestMixedSizes(t *testing.T) {
	for name, count := range Scales {
		rows, err := Choose(Workloads(count), []string{"Mixed"})
		if err != nil {
			t.Fatal(err)
		}
		w := rows[0]
		largest, wanted := map[int64]int{}, int64(0)
		for _, node := range w.MakeNodes() {
			largest[node.Status.Allocatable.Cpu().Value()]++
		}
		for i := range w.Pods() {
			wanted += w.request(w.Group(i))
		}
		// Where no pod of the largest size fits any more, less than that is free on each node.
		room := int64(0)
		for cpu, nodes := range largest {
			room += int64(nodes) * (1000*cpu - mixedPods[len(mixedPods)-1])
		}
		if len(largest) != len(mixedNodes) || wanted > room {
			t.Errorf("%s: nodes by CPU are %v; the pods want %d thousandths, and are sure of %d", name, largest, wanted, room)
		}
	}
}

func TestMore(t *testing.T) {
	w := Workload{Nodes: 24, Groups: 3, PerGroup: 1, Mixed: true}
	node := w.MakeNodes()[0] // 4 CPU
	pod := w.MakePod(0, "", ReplicaSet(0))
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(2000, resource.DecimalSI)
	for _, tc := range []struct {
		group, on, want int
	}{{0, 0, 40}, {0, 1, 20}, {1, 1, 2}, {2, 0, 1}, {2, 1, 0}, {1, 3, 0}} {
		on := slices.Repeat([]*corev1.Pod{pod}, tc.on)
		if got := w.More(tc.group, node, on); got != tc.want {
			t.Errorf("beside %d pods of 2 CPU, %d more of group %d fit, want %d", tc.on, got, tc.group, tc.want)
		}
	}
}

func TestAttackers(t *testing.T) {
	w := Workload{Nodes: 5000, Attack: AttackLevels}
	keys := sets.New[string]()
	pods := w.Attackers("one")
	for _, pod := range pods {
		for _, c := range pod.Spec.TopologySpreadConstraints {
			keys.Insert(c.TopologyKey)
		}
		if len(pod.Spec.TopologySpreadConstraints) != mostLevels || pod.Spec.NodeName != "" || pod.Spec.NodeSelector[PoolLabel] != poolNone {
			t.Fatalf("an attacker asks for %v", pod.Spec)
		}
	}
	if len(pods) != 120 || len(keys) != 1+120*(mostLevels-1) || w.Queued() != w.Pods()+120 {
		t.Errorf("%d attackers with %d keys in all, %d pods in the queue", len(pods), len(keys), w.Queued())
	}
	w.Attack, w.Levels = Misfits, zoneRackHost
	for i, pod := range w.Attackers("one") {
		pods[i].Spec.TopologySpreadConstraints = soft(w.Levels, pods[i].Labels)
		if !equality.Semantic.DeepEqual(pod, pods[i]) {
			t.Fatalf("a pod that is refused differs from an attacker not in its levels alone: %v", pod)
		}
	}
	w.Attack = AttackOwners
	nodes, racks := sets.New[string](), sets.New[string]()
	all := w.MakeNodes()
	for _, pod := range w.Attackers("one") {
		i := slices.IndexFunc(all, func(node *corev1.Node) bool { return node.Name == pod.Spec.NodeName })
		nodes.Insert(all[i].Name)
		racks.Insert(all[i].Labels[RackLabel])
	}
	if len(nodes) != 500 || len(racks) != regions*zonesOfRegion*racksOfZone || w.Queued() != w.Pods() {
		t.Errorf("attackers are on %d nodes of %d racks, with %d pods in the queue", len(nodes), len(racks), w.Queued())
	}
}

// Every pod is of one allocation, which is in the partition or below one that is.
func TestTenants(t *testing.T) {
	rows, err := Choose(Workloads(24), []string{"Allocations200"})
	if err != nil {
		t.Fatal(err)
	}
	w, tops, claimed := rows[0], sets.New[string](), sets.New[string]()
	tenants := w.Tenants()
	for _, o := range tenants[1:] {
		spec := o.Object["spec"].(map[string]any)
		if parent, below := spec["parent"].(string); !below {
			tops.Insert(o.GetName())
		} else if !tops.Has(parent) {
			t.Errorf("%s is below %q", o.GetName(), parent)
		}
		selector := spec["assignments"].([]any)[0].(map[string]any)["podSelector"].(map[string]any)["matchLabels"].(map[string]any)
		claimed.Insert(selector[AppLabel].(string))
	}
	if tenants[0].GetKind() != "Partition" || len(tenants) != 201 || len(tops) != 20 || len(claimed) != 200 {
		t.Errorf("%d objects, %d of them at the top, claim the pods of %d groups", len(tenants), len(tops), len(claimed))
	}
	for i := range w.Pods() {
		if app := w.MakePod(i, "", ReplicaSet(w.Group(i))).Labels[AppLabel]; !claimed.Has(app) {
			t.Errorf("pod %d is of no allocation", i)
		}
	}
	if rows, err := Choose(Workloads(24), []string{"Basic"}); err != nil || len(rows[0].Tenants()) > 0 {
		t.Errorf("another row has allocations, %v", err)
	}
}
