// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// where is a revision on a node.
type where struct {
	workload       clusterview.Workload
	revision, node string
}

func at(of clusterview.Identity, node string) where { return where{of.Workload, of.Revision, node} }

// ledger is the faults as a test writes them.
type ledger struct {
	rule    placement.Faults
	records map[where]placement.Record
	// news are the changes in their order; of those up to forgotten there are no particulars any more.
	news      []where
	forgotten uint64
	asked     int // for records
}

func newLedger(rule placement.Faults) *ledger {
	return &ledger{rule: rule, records: make(map[where]placement.Record)}
}

func (l *ledger) Rule() placement.Faults { return l.rule }

func (l *ledger) Record(of clusterview.Identity, node string) placement.Record {
	l.asked++
	return l.records[at(of, node)]
}

func (l *ledger) Changed(of clusterview.Identity, since uint64) (nodes []string, anew bool, version uint64) {
	for _, w := range l.news[max(since, l.forgotten):] {
		if w == at(of, w.node) {
			nodes = append(nodes, w.node)
		}
	}
	return nodes, since < l.forgotten, uint64(len(l.news))
}

func (l *ledger) write(w where, r placement.Record) {
	l.records[w] = r
	l.news = append(l.news, w)
}

// forget loses the particulars of all changes so far, among them one that nobody saw.
func (l *ledger) forget() {
	l.news = append(l.news, where{})
	l.forgotten = uint64(len(l.news))
}

// under is a cycle's state in which a ledger was left.
func (l *ledger) under() *framework.CycleState {
	state := framework.NewCycleState()
	clusterview.WriteFaults(state, l)
	return state
}

// faultsRig has the nodes a, b and c, and a ledger in which a pod of web has failed on c.
func faultsRig(t *testing.T, rule placement.Faults) (r *rig, l *ledger, onC where) {
	t.Helper()
	r, l = newRig(t.Context(), t, args()), newLedger(rule)
	for _, name := range []string{"a", "b", "c"} {
		r.join(name)
	}
	onC = at(r.pl.identifier.Identify(webPod("p", "").Obj()), "c")
	l.write(onC, placement.Record{Failures: 1, Unforgiven: 1})
	return r, l, onC
}

var atTwo = placement.Faults{Threshold: 2, HalfOpen: true}

func TestRecordsAreAskedForWhenTheyChange(t *testing.T) {
	r, l, onC := faultsRig(t, atTwo)
	other := webPod("q", "").Label("pod-template-hash", "3").Obj()
	for i, step := range []struct {
		name   string
		change func()
		pod    *corev1.Pod
		most   int
	}{
		{name: "a revision without records", pod: other},
		{name: "a node changes", change: func() { r.runs("a", "3", 1) }, pod: other},
		{name: "records of another revision", change: func() { l.write(onC, placement.Record{}) }, pod: other},
		{name: "a new tally", most: 2}, // every change
		{name: "nothing changes"},
		{name: "a node changes", change: func() { r.runs("a", "2", 1) }},
		{name: "a record changes", change: func() { l.write(onC, placement.Record{Failures: 2}) }, most: 1},
		{name: "both", change: func() { r.runs("a", "2", 1); l.write(onC, placement.Record{}) }, most: 1},
		{name: "nobody knows what", change: l.forget, most: 3},
	} {
		if step.change != nil {
			step.change()
		}
		pod := step.pod
		if pod == nil {
			pod = webPod(fmt.Sprint("p", i), "").Obj()
		}
		l.asked = 0
		r.rank(pod, l.under())
		if l.asked > step.most {
			t.Errorf("%s: %d records were asked for, want %d at most", step.name, l.asked, step.most)
		}
	}
}

// A record of who knows what is no reason to place a pod as if there were none.
func TestFaultsThatCannotBeRead(t *testing.T) {
	r, l, _ := faultsRig(t, atTwo)
	state := l.under()
	state.Write("Espalier/Faults", scores{})
	s := r.pl.PreScore(r.ctx, state, webPod("p", "").Obj(), r.feasible())
	if s.Code() != fwk.Error || s.Message() != `reading "Espalier/Faults": it holds a spreadtree.scores` {
		t.Errorf("PreScore says %v", s)
	}
	if node, _, err := r.pl.Hint(r.ctx, state, webPod("p", "").Obj(), true, func(string) *fwk.Status { return nil }); err == nil {
		t.Errorf("node %q is proposed", node)
	}
}

// observed is a histogram that keeps what it is told.
type observed []float64

func (o *observed) Observe(v float64) { *o = append(*o, v) }

func TestTreesAreTimed(t *testing.T) {
	r := zones(t)
	var built, updated observed
	r.pl.gauges = gauges{built: &built, updated: &updated}
	expect := func(when string, builds, updates int) {
		t.Helper()
		if len(built) != builds || len(updated) != updates {
			t.Errorf("%s: %d trees were built and %d updated, want %d and %d", when, len(built), len(updated), builds, updates)
		}
	}
	r.runs("a1", "2", 1)
	pod := webPod("p", "spread=zone").Obj()
	r.rank(pod, framework.NewCycleState())
	expect("the first pod", 1, 0)
	r.runs("b1", "2", 1)
	r.rank(pod, framework.NewCycleState())
	expect("the second", 1, 1)
	if _, _, err := r.pl.Hint(r.ctx, framework.NewCycleState(), pod, false, func(string) *fwk.Status { return nil }); err != nil {
		t.Fatal(err)
	}
	expect("one with a hint", 1, 2)
	if took := slices.Concat(built, updated); slices.Min(took) <= 0 || slices.Max(took) > 60 {
		t.Errorf("that took %v seconds", took)
	}
}

func TestMisplacedPods(t *testing.T) {
	r := zones(t)
	expect := func(when string, want misplaced) {
		t.Helper()
		if got := r.pl.misplaced(); !slices.Equal(got.byLevel, want.byLevel) || got.onNodes != want.onNodes {
			t.Errorf("%s: %+v are misplaced, want %+v", when, got, want)
		}
	}
	expect("no tree", misplaced{})
	r.runs("a1", "2", 4)
	web := webPod("p", "spread=zone").Obj()
	f := &filters{rig: r}
	f.hint(web, true)
	expect("all in one zone, and the other has room", misplaced{[]int64{2}, 0})
	r.assume(web, "b1")
	f.hint(webPod("o", "spread=zone").Obj(), true)
	expect("one pod more where it belongs", misplaced{[]int64{1}, 0})
	r.rank(webPod("q", "pack=zone").Obj(), framework.NewCycleState())
	expect("and packed it is even in zones", misplaced{[]int64{2}, 0})
	r.rank(ofWorkload("deep", "deep", "spread=rack,spread=zone").Obj(), framework.NewCycleState())
	expect("and one of two levels that has no pods", misplaced{[]int64{2}, 0})
}

// Nodes that the filters refuse to every pod are no places that some are missing from, whether or not their answers outlive the cycle.
func TestMisplacedPodsBesideRefusedNodes(t *testing.T) {
	for _, lasting := range []bool{true, false} {
		t.Run(fmt.Sprint("lasting=", lasting), func(t *testing.T) {
			r := newRig(t.Context(), t, args()).zoned("a1", "a2", "b1", "b2", "c1", "c2")
			f := &filters{rig: r, refused: []string{"a2", "b2", "c2"}}
			for i := range 30 {
				pod := webPod(fmt.Sprint("p", i), "spread=zone").Obj()
				node, _ := f.hint(pod, lasting)
				r.assume(pod, node)
				if got := r.pl.misplaced(); slices.ContainsFunc(got.byLevel, func(pods int64) bool { return pods > 0 }) || got.onNodes > 0 {
					t.Errorf("pod %d went to %s, and %+v are misplaced", i, node, got)
				}
			}
		})
	}
}

// A tree that has not changed is not counted again.
func TestMisplacedPodsAreCountedOnce(t *testing.T) {
	r := zones(t)
	r.runs("a1", "2", 4)
	r.rank(webPod("p", "spread=zone").Obj(), framework.NewCycleState())
	before := r.pl.misplaced()
	// Behind the plugin's back, which nobody may do.
	id, _ := r.pl.trees.index.Nodes().Find("b1")
	r.kept(webPod("p", "spread=zone").Obj()).SetPods(id, 4, 4)
	if after := r.pl.misplaced(); !slices.Equal(before.byLevel, after.byLevel) {
		t.Errorf("%+v and then %+v", before, after)
	}
}

func TestScrape(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := zones(t)
	r.pl.live(ctx, "of this test")
	r.runs("a1", "2", 4)
	(&filters{rig: r}).hint(webPod("p", "spread=zone").Obj(), true)
	page := func() (ours []string) {
		families, err := legacyregistry.DefaultGatherer.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "espalier_misplaced_pods" && strings.Contains(m.String(), "of this test") {
					ours = append(ours, fmt.Sprint(m.GetLabel()[0].GetValue(), "=", m.GetGauge().GetValue()))
				}
			}
		}
		return ours
	}
	if got := page(); !slices.Equal(got, []string{"1=2", "node=0"}) {
		t.Errorf("a scrape says %q", got)
	}
	cancel()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return len(page()) == 0, nil })
	if err != nil {
		t.Error("a plugin that has ended is counted")
	}
}
