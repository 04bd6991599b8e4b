// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// said takes the events that there are.
func (r *rig) said() []string {
	var all []string
	for {
		select {
		case e := <-r.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// What has no effect is said once for an owner, by the fast path and by the other.
func TestNotices(t *testing.T) {
	r := newRig(t.Context(), t, args())
	r.join("a1", "zone=a", "rack=1")
	r.join("a2", "zone=a", "rack=2")
	r.join("b1", "zone=b", "rack=3")
	place := func(p *st.PodWrapper) []string {
		(&filters{rig: r}).hint(p.Obj(), true)
		r.rank(p.Obj(), framework.NewCycleState())
		return r.said()
	}
	constrained := func(name string, maxSkew int) *st.PodWrapper {
		return webPod(name, "").SpreadConstraint(maxSkew, "zone", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("pod-template-hash", "2").Obj(), nil, nil, nil, nil)
	}
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		want string // a part of the one event, "" for none
	}{
		{"nothing asked", webPod("nothing", ""), ""},
		{"all is honoured", webPod("all", "spread=zone"), ""},
		{"a level that no node has", webPod("none", "spread=zon"), `Warning PlacementIgnored The level over "zon" decides nothing: no node has this label.`},
		{"a level below a finer one", webPod("below", "spread=rack;nodesWithoutKey=Exclude,spread=zone"), `The level over "zone" decides nothing below the level over "rack", which is finer: name "zone" first.`},
		{"constraints", constrained("skewed", 3), `The constraint over "zone" has maxSkew 3`},
		{"constraints that are honoured", constrained("even", 1), ""},
		{"a constraint about other pods alone", webPod("others", "").SpreadConstraint(1, "zone", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("app", "other").Obj(), nil, nil, nil, nil), "does not select the pod itself"},
	} {
		got := place(tc.pod)
		if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)) {
			t.Errorf("%s: events are %q, want %q", tc.name, got, tc.want)
		}
		if again := place(tc.pod); len(again) > 0 {
			t.Errorf("%s: they are given again: %q", tc.name, again)
		}
	}
}

// Owners that share a tally have what is theirs said to them each, and a node that comes may change what that is.
func TestNoticesOfOwnersUnderOneSelector(t *testing.T) {
	r := zones(t)
	f := &filters{rig: r}
	place := func(owner, maxSkew int) []string {
		p := ofService(owner, maxSkew)
		p.Spec.TopologySpreadConstraints[0].MaxSkew = int32(maxSkew)
		node, _ := f.hint(p, true)
		f.assume(p, node)
		return r.said()
	}
	for owner, maxSkew := range []int{1, 1, 5, 1, 6} {
		if said := place(owner, maxSkew); (len(said) == 1) != (maxSkew > 1) || len(said) > 1 {
			t.Errorf("owner %d with maxSkew %d has the events %q", owner, maxSkew, said)
		}
	}
	place2 := func(name string) []string {
		f.hint(webPod(name, "spread=rack;nodesWithoutKey=Exclude,spread=zone").Obj(), true)
		return r.said()
	}
	if said := place2("p"); len(said) != 1 || !strings.Contains(said[0], "no node has this label") {
		t.Errorf("without racks it is said %q", said)
	}
	for i, zone := range []string{"a", "a", "b"} {
		r.join(fmt.Sprint("racked", i), "zone="+zone, fmt.Sprint("rack=", i))
	}
	r.pl.misplaced() // a scrape sees the new nodes first
	if said := place2("p"); len(said) != 1 || !strings.Contains(said[0], "below the level") {
		t.Errorf("with racks it is said %q", said)
	}
}

// An event has room for so much, whatever a pod says.
func TestLongNotices(t *testing.T) {
	r := zones(t)
	var levels []string
	for i := range 16 {
		levels = append(levels, fmt.Sprintf("spread=%s-%d", strings.Repeat("x", 60), i))
	}
	(&filters{rig: r}).hint(webPod("p", strings.Join(levels, ",")).Obj(), true)
	got := r.said()
	if len(got) != 1 || len(got[0]) > len("Warning "+reasonIgnored+" ")+1024 || !strings.HasSuffix(got[0], "…") {
		t.Errorf("events are %q", got)
	}
}

// A pod is counted from the moment it is assumed in the scheduler's cache until it is
// forgotten there: the plugin keeps no reservations of its own.
func TestAssumedPodsAreCounted(t *testing.T) {
	r := zones(t)
	pod := webPod("p", "spread=zone").Obj()
	assumed := r.assume(pod, "a1")
	if got := r.place(webPod("q", "spread=zone").Obj()); got != "b1" {
		t.Errorf("the next pod went to %s", got)
	}
	if got := r.counted(pod, "a1"); got != [2]int64{1, 1} {
		t.Errorf("with the pod assumed the tree counts %v", got)
	}
	r.must(r.cache.ForgetPod(r.logger, assumed))
	r.rank(pod, framework.NewCycleState())
	if a, b := r.counted(pod, "a1"), r.counted(pod, "b1"); a != [2]int64{} || b != [2]int64{1, 1} {
		t.Errorf("in the next cycle the tree counts %v on a1 and %v on b1", a, b)
	}
}

// In a cycle for a group of pods the scheduler assumes them in the snapshot alone. A node that is the only one that fits is taken without
// PreScore; when the group fails the snapshot gives the node its old generation back.
func TestRegression_GroupCycle(t *testing.T) {
	r := zones(t)
	other := st.MakePod().Namespace("x").Name("o").UID("o").Node("a1").Obj()
	g1, g2 := webPod("g1", "spread=zone").Node("a1").Obj(), webPod("g2", "spread=zone").Obj()
	r.rank(g2, framework.NewCycleState())
	r.must(r.cache.AddPod(r.logger, other))
	r.must(r.cache.UpdateSnapshot(r.logger, r.snapshot))

	info, err := framework.NewPodInfo(g1)
	r.must(err)
	r.must(r.snapshot.AssumePod(info))
	r.preScore(g2)
	if got := r.groupCounted(g2, "a1"); got != 1 {
		t.Errorf("within the cycle the tree counts %d pods of the group on a1, want 1", got)
	}
	r.must(r.snapshot.ForgetPod(r.logger, g1))
	r.preScore(g2)
	if got := r.groupCounted(g2, "a1"); got != 0 {
		t.Errorf("after the group failed the tree counts %d pods of it on a1", got)
	}
}

// groupCounted is what the tree counts of a revision on a node, in the snapshot as it is.
func (r *rig) groupCounted(pod *corev1.Pod, node string) int64 {
	r.Helper()
	id, _ := r.pl.trees.index.Nodes().Find(node)
	revision, _ := r.shown(pod).Tally.Pods(id)
	return revision
}

// preScore scores a pod on the snapshot as it is.
func (r *rig) preScore(pod *corev1.Pod) {
	r.Helper()
	nodes, err := r.snapshot.NodeInfos().List()
	r.must(err)
	if s := r.pl.PreScore(r.ctx, framework.NewCycleState(), pod, nodes); !s.IsSuccess() {
		r.Fatal(s)
	}
}

// steppedClock calls what is due once its own lock is given back: what it calls sets timers.
type steppedClock struct {
	*clocktesting.FakeClock
	due []func()
}

func (c *steppedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.FakeClock.AfterFunc(d, func() { c.due = append(c.due, f) })
}

func (c *steppedClock) advance(d time.Duration) {
	c.Step(d)
	due := c.due
	c.due = nil
	for _, f := range due {
		f()
	}
}

func TestWhatIsIdleIsEvicted(t *testing.T) {
	r := zones(t)
	now := &steppedClock{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	r.pl.idle.clock = now
	r.runs("a1", "1", 1)
	used, idle := webPod("used", "spread=zone").Obj(), webPod("idle", "pack=zone").Obj()
	r.rank(idle, framework.NewCycleState())
	index := r.pl.trees.index
	for i := range 3 {
		r.rank(used, framework.NewCycleState())
		if want := []bool{true, true, false}[i]; (r.kept(idle) != nil) != want {
			t.Errorf("after %d visits it is %t that the idle tally is kept", i, !want)
		}
		now.advance(maxIdle)
	}
	if r.kept(used) == nil || r.pl.trees.index != index || r.pl.trees.topologies.Len() != 1 {
		t.Error("a tally that was used since the last visit, its topology or its index, is gone")
	}
	now.advance(maxIdle)
	if n := len(r.pl.trees.all()); n != 0 || r.pl.trees.index == index {
		t.Errorf("a scheduler that does nothing keeps %d tallies and its index", n)
	}
	if now.HasWaiters() {
		t.Error("a scheduler that keeps nothing has a timer")
	}
	if scores := r.rank(used, framework.NewCycleState()); scores["b1"] != 100 || scores["a2"] == 100 {
		t.Errorf("made again, the tally gives %v", scores)
	}
	if !now.HasWaiters() {
		t.Error("nobody will look after the tally that was made again")
	}
}

// The index of a time in which nothing was placed is garbage: a scheduler that places a pod an hour must not keep one more each time.
func TestNothingKeepsAnIndexThatIsEvicted(t *testing.T) {
	r := zones(t)
	now := &steppedClock{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	r.pl.idle.clock = now
	r.runs("a1", "1", 1)
	pod := webPod("p", "spread=zone").Obj()
	r.rank(pod, framework.NewCycleState())
	index := weak.Make(r.pl.trees.index)
	if r.pl.looked.Len() == 0 {
		t.Fatal("no owner was looked at for what has no effect")
	}
	for range 2 {
		now.advance(maxIdle)
	}
	runtime.GC()
	if index.Value() != nil {
		t.Error("an index that was evicted is kept")
	}
	r.rank(pod, framework.NewCycleState())
}

// Bare pods and Jobs of one pod: nothing is kept of them.
func TestWorkloadsOfOnePodHaveNoTally(t *testing.T) {
	r := newRig(t.Context(), t, args())
	for name, cpu := range map[string]string{"a1": "8", "a2": "8", "b1": "4"} {
		r.cache.AddNode(r.logger, labelled(name, "zone="+name[:1]).Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: cpu}).Obj())
	}
	alone := func(name string) string {
		pod := ofWorkload(name, name, "spread=zone").Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"}).Obj()
		if r.kept(pod) != nil {
			t.Errorf("%s has a tally of its own", name)
		}
		return r.place(pod)
	}
	// All go to the zone with the lower load: zone a has 16 CPUs, zone b 4.
	for i, want := range []string{"a1", "b1", "a2", "a1", "a2", "a1", "b1"} {
		if got := alone(string(rune('p' + i))); got != want {
			t.Errorf("pod %d went to %s, want %s", i, got, want)
		}
	}
	if n := len(r.pl.trees.all()); n != 0 {
		t.Errorf("there are %d tallies", n)
	}
	if err := r.shown(ofWorkload("z", "z", "spread=zone").Obj()).Validate(); err != nil {
		t.Error(err)
	}
	if got := r.place(ofWorkload("p", "second", "spread=zone").Obj()); got != "b1" {
		t.Errorf("the second pod of p went to %s, want b1: the first is in zone a", got)
	}
	if n := len(r.pl.trees.all()); n != 1 {
		t.Errorf("there are %d tallies after the second pod of a workload, want 1", n)
	}
}
