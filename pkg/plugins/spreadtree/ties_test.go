// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/imagelocality"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// TestImagesBreakTies is over zone a with three nodes, zone b with two, and the node c1 in a zone of its own. Hints and scores agree.
func TestImagesBreakTies(t *testing.T) {
	for _, tc := range []struct {
		name, levels string
		images       []string // the nodes that have the image
		refused      []string
		runs         func(r *rig)
		want         string
	}{
		{name: "none has it", want: "a1"},
		{name: "one has it", images: []string{"a3"}, want: "a3"},
		{name: "two have it", images: []string{"a2", "a3"}, want: "a2"},
		{name: "it does not fit there", images: []string{"a3", "b2"}, refused: []string{"a3"}, want: "b2"},
		{name: "it fits nowhere else", images: []string{"a3"}, refused: []string{"a1", "a2", "b1", "b2", "c1"}, want: "a3"},
		{name: "more pods are there", images: []string{"a2"}, runs: func(r *rig) { r.runs("a2", "2", 1) }, want: "a1"},
		{name: "in the branch that is chosen", levels: "spread=zone", images: []string{"a2", "b1"}, want: "a2"},
		{name: "not in another branch", levels: "spread=zone", images: []string{"b1"}, want: "a1"},
		{name: "not in a fuller one", levels: "spread=zone", images: []string{"a2", "b2"}, runs: func(r *rig) { r.runs("a1", "2", 2); r.runs("c1", "2", 1) }, want: "b2"},
		{name: "between branches of one node", levels: "spread=host", images: []string{"b2"}, want: "b2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &filters{rig: newRig(t.Context(), t, args()), refused: tc.refused}
			scorer, err := imagelocality.New(f.ctx, nil, f.pl.handle)
			f.must(err)
			f.pl.BreakTies(scorer.(fwk.ScorePlugin))
			all := []string{"a1", "a2", "a3", "b1", "b2", "c1"}
			for _, name := range all {
				n := labelled(name, "zone="+name[:1], "host="+name)
				if slices.Contains(tc.images, name) {
					n.Images(map[string]int64{"large:1": 1 << 30})
				}
				f.cache.AddNode(f.logger, n.Obj())
			}
			if tc.runs != nil {
				tc.runs(f.rig)
			}
			pod := webPod("p", tc.levels).Container("large:1").Obj()
			if got, _ := f.hint(pod, true); got != tc.want {
				t.Errorf("the hint is %s, want %s", got, tc.want)
			}
			fit := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(tc.refused, name) })
			scores := f.rank(pod, framework.NewCycleState(), fit...)
			for name, score := range scores {
				if (score == fwk.MaxScore) != (name == tc.want) {
					t.Errorf("the scores are %v, want %s to be the best", scores, tc.want)
				}
			}
			if len(scores) != len(fit) {
				t.Errorf("%d nodes have scores, and %d fit", len(scores), len(fit))
			}
		})
	}
}

// counting is a scorer that counts how often it is asked, and has an error to say.
type counting struct {
	fwk.ScorePlugin
	asked map[string]int
	err   error
}

func (c *counting) Score(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	c.asked[node.Node().Name]++
	return 0, fwk.AsStatus(c.err)
}

// However many nodes tie, a few are scored, and none if no node has an image of the pod. With an error none of them is better.
func TestFewNodesAreScored(t *testing.T) {
	f := &filters{rig: newRig(t.Context(), t, args())}
	for i := range 100 {
		f.join(fmt.Sprintf("n%03d", i))
	}
	f.cache.AddNode(f.logger, labelled("other").Images(map[string]int64{"large:1": 1 << 30}).Unschedulable(true).Obj())
	c := &counting{asked: make(map[string]int)}
	f.pl.BreakTies(c)
	f.want(webPod("small", "").Container("small:1").Obj(), true, "n000", "n000")
	if len(c.asked) != 0 {
		t.Errorf("these were scored for an image that no node has: %v", c.asked)
	}
	pod := webPod("p", "").Container("large:1").Obj()
	f.want(pod, true, "n000", "n000")
	if asked := slices.Sorted(maps.Keys(c.asked)); len(asked) != maxTied || asked[maxTied-1] != fmt.Sprintf("n%03d", maxTied-1) {
		t.Errorf("these were scored: %q", asked)
	}
	c.err = errors.New("no images")
	f.want(pod, true, "n000", "n000")
	if scores := f.rank(pod, framework.NewCycleState()); scores["n000"] != fwk.MaxScore || scores["n001"] != fwk.MaxScore-1 {
		t.Errorf("the scores are %v", scores)
	}
}

// Where the profile prefers some nodes its scores decide between all that are equals to the tree, before loads do, and nothing is proposed.
func TestAProfileThatPrefersNodes(t *testing.T) {
	f := &filters{rig: newRig(t.Context(), t, args())}
	for _, name := range []string{"a", "b"} {
		f.cache.AddNode(f.logger, st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: "8", corev1.ResourcePods: "100"}).Obj())
	}
	f.must(f.cache.AddPod(f.logger, st.MakePod().Namespace("other").Name("load").UID("load").Node("a").Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "4"}).Obj()))
	pod := webPod("p", "").Obj()
	f.want(pod, true, "b", "a b") // a is probed, because there is no topology yet
	f.pl.SetScoring(clusterview.Scoring{PrefersNodes: true})
	f.feasible()
	if node, _, err := f.pl.Hint(f.ctx, framework.NewCycleState(), pod, true, f.fits); node != "" || !errors.Is(err, clusterview.ErrPrefers) {
		t.Errorf("it proposes %q, %v", node, err)
	}
	if scores := f.rank(pod, framework.NewCycleState()); scores["a"] != fwk.MaxScore || scores["b"] != fwk.MaxScore {
		t.Errorf("the scores are %v", scores)
	}
}

// Of nodes that tie, each replica wants another one first, and a spread is as even in any order.
func TestHashTies(t *testing.T) {
	first := make(map[string]string)
	for _, replica := range []string{"", "a", "b", "c"} {
		f := &filters{rig: newRig(t.Context(), t, args())}
		f.pl.HashTies(replica)
		for i := range 60 {
			f.join(fmt.Sprintf("n%03d", i), fmt.Sprint("zone=", i%3))
		}
		zones, seen := make(map[int]int), make(map[string]bool)
		for i := range 30 {
			pod := webPod(fmt.Sprint("p", i), "spread=zone").Obj()
			node, _ := f.hint(pod, true)
			if i == 0 {
				first[node] += replica + " "
			}
			if scores := f.rank(pod, framework.NewCycleState()); scores[node] != fwk.MaxScore {
				t.Errorf("replica %q: the hint is %s, whose score is %d", replica, node, scores[node])
			}
			var at int
			if _, err := fmt.Sscanf(node, "n%d", &at); err != nil {
				t.Fatal(err)
			}
			zones[at%3]++
			if seen[node] {
				t.Errorf("replica %q: a second pod goes to %s", replica, node)
			}
			seen[node] = true
			f.runs(node, "2", 1)
		}
		if zones[0] != 10 || zones[1] != 10 || zones[2] != 10 {
			t.Errorf("replica %q: the zones have %v", replica, zones)
		}
	}
	if len(first) != 4 || first["n000"] != " " {
		t.Errorf("the first pod goes to %v: want n000 without a replica, and others with one", first)
	}
}

// The order of nodes on which others make way is that of the tree, in which pods that are nominated count, but not
// longer than it takes to say so.
func TestOrderForVictims(t *testing.T) {
	r := newRig(t.Context(), t, args()).zoned("a1", "a2", "b1", "c1")
	r.runs("a1", "2", 1)
	pod := webPod("p", "spread=zone").Obj()
	order := func() map[string]int64 {
		t.Helper()
		r.feasible()
		got, err := r.pl.Order(r.ctx, framework.NewCycleState(), pod, []string{"a1", "a2", "b1"})
		r.must(err)
		return got
	}
	expect := func(when string, want map[string]int64) {
		t.Helper()
		if got := order(); !maps.Equal(got, want) {
			t.Errorf("%s: the order is %v, want %v", when, got, want)
		}
	}
	expect("with a pod in zone a", map[string]int64{"b1": 0, "a2": -1, "a1": -2})
	r.nominatePod("b1", webPod("q", "spread=zone").Obj())
	r.nominatePod("b1", webPod("r", "spread=zone").Obj())
	expect("with two nominated for zone b", map[string]int64{"a2": 0, "a1": -1, "b1": -2})
	r.nominatePod("a2", pod)
	expect("the pod itself does not count", map[string]int64{"a2": 0, "a1": -1, "b1": -2})
	if got := r.counted(pod, "b1"); got != [2]int64{} {
		t.Errorf("the pods that are nominated are counted as %v afterwards", got)
	}
}

// To a pod that somebody else has chosen a node for, all nodes are equal.
func TestOrderOfPreassigned(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1", "zone=a")
	r.runs("a1", "2", 1)
	r.join("b1", "zone=b")
	r.feasible()
	pod := webPod("p", "spread=zone").OwnerReference("ds", daemonSet).Obj()
	if got, err := r.pl.Order(r.ctx, framework.NewCycleState(), pod, []string{"a1", "b1"}); err != nil || got["a1"] != got["b1"] {
		t.Errorf("the order is %v, %v", got, err)
	}
}
