// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
