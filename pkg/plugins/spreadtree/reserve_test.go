// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// replicaSet is one whose pods are placed by the plugin, and removed as its controller removes them.
type replicaSet struct {
	*rig
	f      *filters
	levels string
	serial int
	// binding are pods on a node whose bindings have not come back; bound are all others.
	binding, bound []*corev1.Pod
}

func newReplicaSet(t *testing.T, tb placementtest.TB, levels string) *replicaSet {
	r := newRig(t.Context(), tb, args())
	return &replicaSet{rig: r, f: &filters{rig: r}, levels: levels}
}

// zone adds nodes of a zone, in racks of two.
func (rs *replicaSet) zone(zone string, nodes int) {
	for i := range nodes {
		rs.join(fmt.Sprintf("%s%d", zone, i), "zone="+zone, fmt.Sprintf("rack=%s-%d", zone, i/2))
	}
}

// up places pods. Their bindings are under way.
func (rs *replicaSet) up(pods int, change ...func(*corev1.Pod)) {
	for range pods {
		rs.serial++
		name := fmt.Sprint("web-", rs.serial)
		w := st.MakePod().Name(name).UID(name).Label("pod-template-hash", "1").Annotation(clusterview.PlacementAnnotation, rs.levels)
		pod := plugintest.Pod(w, "apps/v1 ReplicaSet web-1 web-1-uid")
		for _, c := range change {
			c(pod)
		}
		rs.f.feasible()
		state := framework.NewCycleState()
		node, _, err := rs.pl.Hint(rs.ctx, state, pod, true, rs.f.fits)
		rs.must(err)
		assumed := rs.assume(pod, node)
		if status := rs.pl.Reserve(rs.ctx, state, assumed, node); !status.IsSuccess() {
			rs.Fatal(status)
		}
		// What is in the cache is not what the API server makes of the binding.
		bound := assumed.DeepCopy()
		if bound.Annotations == nil {
			bound.Annotations = make(map[string]string)
		}
		maps.Copy(bound.Annotations, clusterview.ReadBinding(state))
		rs.binding = append(rs.binding, bound)
	}
}

// bind has the bindings come back.
func (rs *replicaSet) bind() {
	for _, pod := range rs.binding {
		rs.must(rs.cache.AddPod(rs.logger, pod))
		rs.bound = append(rs.bound, pod)
	}
	rs.binding = nil
}

// down removes the pods that a ReplicaSet's controller would remove.
func (rs *replicaSet) down(pods int) {
	rs.bind()
	onNode := make(map[string]int)
	for _, p := range rs.bound {
		onNode[p.Spec.NodeName]++
	}
	ranked := controller.ActivePodsWithRanks{Pods: slices.Clone(rs.bound)}
	for _, p := range ranked.Pods {
		ranked.Rank = append(ranked.Rank, onNode[p.Spec.NodeName])
	}
	sort.Sort(ranked)
	for _, p := range ranked.Pods[:pods] {
		rs.remove(p)
	}
}

func (rs *replicaSet) remove(pod *corev1.Pod) {
	rs.must(rs.cache.RemovePod(rs.logger, pod))
	rs.bound = slices.DeleteFunc(rs.bound, func(p *corev1.Pod) bool { return p == pod })
}

// restart has the plugin forget all that it knows, as another process would.
func (rs *replicaSet) restart() {
	rs.bind() // whoever starts lists what is bound
	rs.pl.trees.reset()
}

func (rs *replicaSet) pods() int { return len(rs.bound) + len(rs.binding) }

// by counts the pods by what comes of the name of their node.
func (rs *replicaSet) by(key func(node string) string) map[string]int {
	pods := make(map[string]int)
	for _, p := range slices.Concat(rs.bound, rs.binding) {
		pods[key(p.Spec.NodeName)]++
	}
	return pods
}

func zoneOf(node string) string { return node[:1] }

func rackOf(node string) string { return fmt.Sprintf("%s-%d", node[:1], (node[1]-'0')/2) }

func sorted(pods map[string]int) []int {
	counts := slices.Sorted(maps.Values(pods))
	slices.Reverse(counts)
	return counts
}

// 100 pods in shares of 70 and 30.
func TestScaleDownKeepsShares(t *testing.T) {
	rs := newReplicaSet(t, t, "spread=zone;weight.a=70;weight.b=30")
	rs.zone("a", 2)
	rs.zone("b", 2)
	rs.up(100)
	rs.down(90)
	if got := rs.by(zoneOf); got["a"] != 7 || got["b"] != 3 {
		t.Errorf("got %v, want 7 and 3", got)
	}
}

// Zones of three, two and one rack of two nodes: what is left is even over zones, and over the racks of each.
func TestScaleDownOverTwoLevels(t *testing.T) {
	rs := newReplicaSet(t, t, "spread=zone,spread=rack")
	rs.zone("a", 6)
	rs.zone("b", 4)
	rs.zone("c", 2)
	rs.up(60)
	rs.down(36)
	if got := sorted(rs.by(zoneOf)); !slices.Equal(got, []int{8, 8, 8}) {
		t.Errorf("zones have %v", got)
	}
	want := map[string]int{"a-0": 3, "a-1": 3, "a-2": 2, "b-0": 4, "b-1": 4, "c-0": 8}
	if got := rs.by(rackOf); !maps.Equal(got, want) {
		t.Errorf("racks have %v, want %v", got, want)
	}
}

// After each step of any history of scaling, of bindings that come back late and of schedulers that start anew, no zone
// has two pods more than another.
func TestScaleDownIsEven(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rs := newReplicaSet(t, rt, "spread=zone,spread=kubernetes.io/hostname")
		for i := range rapid.IntRange(1, 4).Draw(rt, "zones") {
			rs.zone(string(rune('a'+i)), rapid.IntRange(1, 4).Draw(rt, "nodes"))
		}
		zones := len(rs.nodesByZone())
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				rs.down(rapid.IntRange(0, rs.pods()).Draw(rt, "down"))
			case 1:
				rs.bind()
			case 2:
				rs.restart()
			default:
				rs.up(rapid.IntRange(1, 12).Draw(rt, "up"))
			}
			counts := rs.by(zoneOf)
			if len(counts) > 0 && (len(counts) < min(zones, rs.pods()) || slices.Max(sorted(counts))-slices.Min(sorted(counts)) > 1) {
				rt.Fatalf("zones have %v", counts)
			}
		}
	})
}

// A pod that comes and goes between two pods of its controller leaves its number to the next.
func TestNumberOfAPodThatIsGone(t *testing.T) {
	rs := newReplicaSet(t, t, "spread=zone,spread=kubernetes.io/hostname")
	rs.zone("a", 1)
	rs.up(2)
	rs.down(1)
	rs.up(1)
	if cost := rs.binding[0].Annotations[corev1.PodDeletionCost]; cost != "-2" {
		t.Errorf("the second of two pods costs %s, want -2", cost)
	}
}

func (rs *replicaSet) nodesByZone() map[string]int {
	zones := make(map[string]int)
	for _, n := range rs.feasible() {
		zones[zoneOf(n.Node().Name)]++
	}
	return zones
}

// Where somebody else has written costs, all pods of the owner are left alone, and it is said once.
func TestForeignDeletionCosts(t *testing.T) {
	costs := func(pod *corev1.Pod) {
		if pod.Annotations[corev1.PodDeletionCost] == "" {
			pod.Annotations[corev1.PodDeletionCost] = "7"
		}
	}
	for name, someoneElse := range map[string]func(rs *replicaSet){
		"in the template": func(rs *replicaSet) { rs.up(1, costs) },
		"on a pod that had none": func(rs *replicaSet) {
			rs.pl.scaleDown = config.ScaleDownAny
			rs.up(1)
			rs.bind()
			rs.pl.scaleDown = config.ScaleDownEven
			rs.update(rs.bound[0], costs)
		},
		"in place of ours": func(rs *replicaSet) {
			rs.up(1)
			rs.bind()
			rs.update(rs.bound[0], func(p *corev1.Pod) { p.Annotations[corev1.PodDeletionCost] = "-2147483648" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			rs := newReplicaSet(t, t, "spread=zone")
			rs.zone("a", 1)
			rs.zone("b", 1)
			someoneElse(rs)
			rs.up(2)
			rs.bind()
			for _, p := range rs.bound[1:] {
				if cost, has := p.Annotations[corev1.PodDeletionCost]; has {
					t.Errorf("%s is bound with the cost %s", p.Name, cost)
				}
			}
			if events := len(rs.events.Events); events != 1 {
				t.Errorf("it was said %d times", events)
			}
		})
	}
}

// update has the API server show another state of a pod that is bound.
func (rs *replicaSet) update(pod *corev1.Pod, change func(*corev1.Pod)) {
	after := pod.DeepCopy()
	change(after)
	rs.must(rs.cache.UpdatePod(rs.logger, pod, after))
	rs.bound[slices.Index(rs.bound, pod)] = after
}

// A number that is taken back is free.
func TestUnreserve(t *testing.T) {
	rs := newReplicaSet(t, t, "spread=zone")
	rs.zone("a", 1)
	rs.up(1)
	first := rs.binding[0]
	rs.pl.Unreserve(rs.ctx, nil, first, "a0")
	rs.must(rs.cache.ForgetPod(rs.logger, first))
	rs.binding = nil
	rs.up(1)
	if n := rs.binding[0].Annotations[clusterview.DeletionOrdinalAnnotation]; n != "1" {
		t.Errorf("the next pod has the number %q, want 1", n)
	}
}

// The deletion cost is found in the topology that the pod was placed over, also where its constraints are not listed in the order of
// the levels.
func TestReserveMakesNoTopology(t *testing.T) {
	rs := newReplicaSet(t, t, "")
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		rs.join(name, "zone="+name[:1], "rack="+name)
	}
	rs.up(4, func(pod *corev1.Pod) {
		delete(pod.Annotations, clusterview.PlacementAnnotation)
		for _, key := range []string{"rack", "zone"} {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: st.MakeLabelSelector().Label("pod-template-hash", "1").Obj(),
			})
		}
	})
	if n := rs.pl.trees.topologies.Len(); n != 1 {
		t.Errorf("there are %d topologies", n)
	}
	for _, pod := range rs.binding {
		if pod.Annotations[corev1.PodDeletionCost] == "" {
			t.Errorf("pod %s has no deletion cost", pod.Name)
		}
	}
}
