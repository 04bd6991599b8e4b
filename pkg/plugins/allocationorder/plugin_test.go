// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocationorder

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/internal/refusal"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestNew(t *testing.T) {
	plugintest.WantNoArguments(t, Name, &AllocationOrder{}, New)
	plugintest.WantNoExtensions(t, &AllocationOrder{})
	plugintest.WantErrorWithoutPreFilter(t, &AllocationOrder{}, &corev1.Pod{})
}

// inGroup makes a pod one of the identity group g.
func inGroup(p *corev1.Pod) { p.Labels[clusterview.IdentityGroupLabel] = "g" }

// ofTwo gives an allocation the identity group g of two pods.
func ofTwo(s *placementv1alpha1.AllocationSpec) {
	s.IdentityGroups = []placementv1alpha1.IdentityGroup{{Name: "g", Count: new(int32(2))}}
}

// Who is held hears why, and where it is in the order.
func TestPreEnqueue(t *testing.T) {
	r := newRig(t)
	r.allocation("prod", 4, func(s *placementv1alpha1.AllocationSpec) { s.MaxUtilizationPercent = new(int32(100)) })
	r.allocation("bad", 0, func(s *placementv1alpha1.AllocationSpec) { s.Parent = "gone" })
	r.allocation("shards", 0, ofTwo)
	r.node("n", 20)
	within, beyond := r.pod("within", "prod", 4, ""), r.pod("beyond", "prod", 1, "")
	bad, none := r.pod("bad", "bad", 1, ""), r.pod("none", "none", 1, "")
	r.pod("s0", "shards", 1, "n", inGroup, func(p *corev1.Pod) { p.Annotations[clusterview.IdentityAnnotation] = "0" })
	s1, s2 := r.pod("s1", "shards", 1, "", inGroup), r.pod("s2", "shards", 1, "", inGroup)
	r.start()
	for pod, want := range map[*corev1.Pod]string{
		within: "", none: "", s1: "",
		beyond: `allocation "prod" has as many pods before it as its maxUtilizationPercent lets run: position 5 of 5`,
		bad:    `allocation "bad" is not accepted: spec.parent: there is no Allocation "gone"`,
		s2:     `identity group "g" has no identity left, all 2 are held: position 4 of 5`,
	} {
		status := r.pl.PreEnqueue(t.Context(), pod)
		if want == "" && !status.IsSuccess() || want != "" && (status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), want)) {
			t.Errorf("%s: got %v, want %q", pod.Name, status, want)
		}
	}
	// What cannot be read is refused as well if it was let in before it was so.
	if _, _, status := r.try(bad); status.Code() != fwk.UnschedulableAndUnresolvable || status.Plugin() != Name {
		t.Errorf("got %v", status)
	}
}

// The pods of a partition come in its order, whatever their PriorityClass.
func TestLess(t *testing.T) {
	r := newTeams(t, 4, 20)
	dev := r.pod("dev", "dev", 1, "", func(p *corev1.Pod) { p.Spec.Priority = new(int32(9)) })
	prod := r.pod("prod", "prod", 1, "")
	r.start()
	entity := func(p *corev1.Pod) fwk.QueuedEntityInfo {
		info, err := framework.NewPodInfo(p)
		r.must(err)
		return &framework.QueuedPodInfo{PodInfo: info}
	}
	if !r.pl.Less(entity(prod), entity(dev)) || r.pl.Less(entity(dev), entity(prod)) {
		t.Error("the pod of dev comes first")
	}
}

// TV23: the lowest number that is free, given once, in the annotations of the Binding. Who is not bound gives it back.
func TestVector_TV23_Reserve(t *testing.T) {
	r := newRig(t)
	r.allocation("a", 0, ofTwo)
	r.node("n", 20)
	pods := []*corev1.Pod{r.pod("p0", "a", 1, "", inGroup), r.pod("p1", "a", 1, "", inGroup)}
	r.start()
	pods = append(pods, r.pod("p2", "a", 1, "", inGroup), r.pod("plain", "a", 1, "")) // whose places are not known yet
	reserve := func(pod *corev1.Pod, want string) {
		t.Helper()
		state := framework.NewCycleState()
		if _, status, _ := r.f.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() {
			t.Fatal(status)
		}
		status := r.f.RunReservePluginsReserve(t.Context(), state, pod, "n")
		if want == "none" {
			if status.Code() != fwk.Unschedulable || !strings.Contains(status.Message(), `identity group "g" has no identity left, or it is not known yet which of the 2 are held: the pod is tried again when one is free; a larger count in allocation "a" lets more run`) {
				t.Errorf("%s: %v", pod.Name, status)
			}
			return
		}
		if got := clusterview.ReadBinding(state)[clusterview.IdentityAnnotation]; !status.IsSuccess() || got != want {
			t.Errorf("%s: got %q, %v, want %q", pod.Name, got, status, want)
		}
	}
	reserve(pods[0], "0")
	reserve(pods[1], "1")
	reserve(pods[2], "none")
	reserve(pods[3], "")
	r.f.RunReservePluginsUnreserve(t.Context(), framework.NewCycleState(), pods[0], "n")
	reserve(pods[2], "0")
}

// Only what can help a pod that was refused has it tried again.
func TestHints(t *testing.T) {
	r := newRig(t)
	r.allocation("a", 0, func(s *placementv1alpha1.AllocationSpec) { s.Traits = map[string]string{"disk": "ssd"} })
	pod := r.pod("p", "a", 1, "")
	r.start()
	events, err := r.pl.EventsToRegister(t.Context())
	placementtest.Must(t, err)
	for _, e := range events {
		// All pods that are held would be asked about anything else, thousands of them for each of thousands of nodes.
		if e.Event.Resource != fwk.TargetPod {
			t.Errorf("held pods are looked at for events of %s", e.Event.Resource)
		}
	}
	changed := func(change func(*corev1.Pod)) *corev1.Pod {
		p := pod.DeepCopy()
		change(p)
		return p
	}
	plugintest.WantHint(t, r.pl, pod, plugintest.PodUpdate(pod, changed(priority("7"))), fwk.Queue)
	plugintest.WantHint(t, r.pl, pod, plugintest.PodUpdate(pod, changed(func(p *corev1.Pod) { p.Labels["team"] = "b" })), fwk.Queue)
	plugintest.WantHint(t, r.pl, pod, plugintest.PodUpdate(pod, changed(func(p *corev1.Pod) { p.Annotations["x"] = "y" })), fwk.QueueSkip)
	shorter := changed(func(p *corev1.Pod) { p.Annotations[clusterview.LeaseAnnotation] = "1h" }) // than its partition allows at most
	plugintest.WantHint(t, r.pl, pod, plugintest.PodUpdate(pod, shorter), fwk.Queue)
}

// Pods of one allocation are alike, and those of two are not.
func TestSign(t *testing.T) {
	r := newRig(t).allocation("a", 0).allocation("b", 0)
	far := func(p *corev1.Pod) { p.Namespace = "unknown" }
	a1, a2, b, none, unknown := r.pod("a1", "a", 1, ""), r.pod("a2", "a", 1, ""), r.pod("b", "b", 1, ""), r.pod("none", "none", 1, ""), r.pod("u", "a", 1, "", far)
	r.start()
	sign := func(p *corev1.Pod) string {
		fragments, status := r.pl.SignPod(t.Context(), p)
		switch {
		case !status.IsSuccess():
			return status.Code().String()
		case len(fragments) == 0:
			return ""
		}
		return fragments[0].Value.(string)
	}
	for pod, want := range map[*corev1.Pod]string{a1: "a", a2: "a", b: "b", none: "", unknown: "Unschedulable"} {
		if got := sign(pod); got != want {
			t.Errorf("%s: got %q, want %q", pod.Name, got, want)
		}
	}
}

// A pod that must wait because its allocation has as many as it may is not counted as one that cannot be read.
func TestFullIsNotUnreadable(t *testing.T) {
	r := newRig(t)
	r.allocation("a", 1, func(s *placementv1alpha1.AllocationSpec) { s.MaxUtilizationPercent = new(int32(100)) })
	r.node("n", 4)
	r.pod("runs", "a", 1, "n")
	waits := r.pod("waits", "a", 1, "")
	r.start()
	counts := func() (all [2]float64) {
		for i, c := range []refusal.Counter{full, podUnreadable} {
			n, err := testutil.GetCounterMetricValue(c.CounterMetric)
			r.must(err)
			all[i] = n
		}
		return all
	}
	before := counts()
	if fits, _, status := r.try(waits); len(fits) > 0 || status.IsSuccess() {
		t.Fatalf("it fits on %q: %v", fits, status)
	}
	if now := counts(); now[0] != before[0]+1 || now[1] != before[1] {
		t.Errorf("counted are %v, and were %v", now, before)
	}
}

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
