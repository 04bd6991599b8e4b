// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles how hard the properties are tried, unless flags say otherwise.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "1000", "rapid.steps": "60"})
	os.Exit(m.Run())
}

var (
	start     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	revisions = []failure.Revision{{"db", "1"}, {"web", "1"}, {"web", "2"}}
	nodes     = []string{"n1", "n2", "n3", "n4", "n5"}
	rules     = []failure.Rule{{Threshold: 2, Window: 10 * time.Second}, {Threshold: 3, Window: 30 * time.Second}, {Threshold: 1, Window: 4 * time.Second}}
)

// pair is a ledger beside its plain form, and what somebody who follows Changed has.
type pair struct {
	ledger *failure.Ledger
	plain  *plain
	seen   map[failure.Revision]map[string]placement.Record
	since  map[failure.Revision]uint64
	// saved is a snapshot, and when in the history it was taken.
	saved   failure.Snapshot
	savedAt uint64
}

func newPair(t *rapid.T) *pair {
	rule, own := rapid.SampledFrom(rules).Draw(t, "rule"), rapid.Bool().Draw(t, "own errors")
	p := &pair{
		ledger: failure.New(failure.Options{Rule: rule, OwnErrors: own, Class: class}),
		plain:  &plain{defaults: rule, ownErrors: own, rules: make(map[failure.Revision]failure.Rule)},
		seen:   make(map[failure.Revision]map[string]placement.Record), since: make(map[failure.Revision]uint64),
	}
	for _, of := range revisions {
		p.seen[of] = make(map[string]placement.Record)
	}
	p.advance(start)
	return p
}

func (p *pair) advance(now time.Time) {
	p.ledger.Advance(now)
	p.plain.advance(now)
}

func (p *pair) at(t *rapid.T) time.Time {
	return p.plain.now.Add(time.Duration(rapid.IntRange(-40, 3).Draw(t, "seconds ago")) * time.Second)
}

func where(t *rapid.T) (failure.Revision, string) {
	return rapid.SampledFrom(revisions).Draw(t, "revision"), rapid.SampledFrom(nodes).Draw(t, "node")
}

// uid is that of one of a few pods of a node: a pod is never on two.
func uid(t *rapid.T, node string) string {
	return fmt.Sprint(node, "/", rapid.IntRange(1, 3).Draw(t, "pod"))
}

func (p *pair) fail(t *rapid.T) {
	of, node := where(t)
	key := rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "key")
	f := failure.Failure{Pod: uid(t, node), Key: key, Kind: rapid.SampledFrom([]string{"Error(1)", "Error(2)", "Error", "Image"}).Draw(t, "kind"), At: p.at(t)}
	under := p.plain.rule(of)
	if rapid.IntRange(0, 9).Draw(t, "another rule") == 0 {
		under = rapid.SampledFrom(rules).Draw(t, "rule")
	}
	held := len(p.plain.on(of, node))
	want := p.plain.fail(of, node, under, f)
	news, first := p.ledger.Fail(of, node, under, f)
	if first != want {
		t.Fatalf("Fail says that this is the first failure: %v, want %v", first, want)
	}
	if !news && len(p.plain.on(of, node)) > held {
		t.Fatalf("Fail says that this is no news, and it is")
	}
}

func (p *pair) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"fail": p.fail, "fail again": p.fail, "and again": p.fail,
		"advance": func(t *rapid.T) {
			p.advance(p.plain.now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds")) * time.Second))
		},
		"step back": func(t *rapid.T) {
			p.advance(p.plain.now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second))
		},
		"wait for a day": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
				p.advance(p.plain.now.Add(failure.Memory - 5*time.Second))
			}
		},
		"place": func(t *rapid.T) {
			of, node := where(t)
			pod := uid(t, node)
			p.ledger.Place(of, node, pod)
			p.plain.place(of, node, pod)
		},
		"gone": func(t *rapid.T) {
			of, node := where(t)
			pod := uid(t, node)
			p.ledger.Gone(of, node, pod)
			p.plain.gone(of, node, pod)
		},
		"succeed": func(t *rapid.T) {
			of, node := where(t)
			pod, at := uid(t, node), p.at(t)
			p.ledger.Succeed(of, node, pod, at)
			p.plain.succeed(of, node, pod, at)
		},
		"set rule": func(t *rapid.T) {
			of, _ := where(t)
			rule := rapid.SampledFrom(rules).Draw(t, "rule")
			p.ledger.SetRule(of, rule)
			p.plain.setRule(of, rule)
		},
		"forget": p.forget,
		"follow": p.follow,
		"save":   p.save,
		"":       p.check,
	}
}

func (p *pair) forget(t *rapid.T) {
	of, node := where(t)
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 3:
		until, history, failures := p.at(t), p.ledger.History(), len(p.plain.failures)
		p.ledger.Forgive(node, until)
		if p.plain.forgive(node, until); len(p.plain.failures) == failures && p.ledger.History() != history {
			t.Fatalf("what forgives nothing changes the history")
		}
	case 0:
		p.ledger.ForgetWorkload(of.Workload)
		p.plain.erase(func(o failure.Revision, _ string) bool { return o.Workload == of.Workload })
	case 1:
		p.ledger.Forget(of)
		p.plain.erase(func(o failure.Revision, _ string) bool { return o == of })
	case 2:
		p.ledger.ForgetNode(node)
		p.plain.erase(func(_ failure.Revision, n string) bool { return n == node })
	}
}

// follow keeps a copy of the records of a revision up to date by Changed alone.
func (p *pair) follow(t *rapid.T) {
	of, _ := where(t)
	changed, anew, version := p.ledger.Changed(of, p.since[of])
	if anew {
		changed = nodes
	}
	p.since[of] = version
	for _, node := range changed {
		p.seen[of][node] = p.ledger.Record(of, node)
	}
	for _, node := range nodes {
		if got, want := p.seen[of][node], p.ledger.Record(of, node); got != want {
			t.Fatalf("who follows Changed believes of %v on %s %+v, and it is %+v", of, node, got, want)
		}
	}
	if again, anew, same := p.ledger.Changed(of, version); len(again) > 0 || anew || same != version {
		t.Fatalf("asked again, Changed says %v, %v, %d; want nothing", again, anew, same)
	}
}

// save takes a snapshot only if the history says so.
func (p *pair) save(t *rapid.T) {
	if now := p.ledger.History(); now != p.savedAt {
		p.saved, p.savedAt = p.ledger.Snapshot(), now
	}
	if diff := cmp.Diff(p.saved, p.ledger.Snapshot()); diff != "" {
		t.Fatalf("what is saved is not what is known, and the history does not say so (-saved +known):\n%s", diff)
	}
}

func (p *pair) check(t *rapid.T) {
	for _, of := range revisions {
		if got, want := p.ledger.Knows(of), p.plain.knows(of); got != want {
			t.Fatalf("the ledger knows %v: %v, want %v", of, got, want)
		}
		if got, want := p.ledger.Rule(of), p.plain.rule(of); got != want {
			t.Fatalf("the rule of %v is %v, want %v", of, got, want)
		}
		for _, node := range nodes {
			if diff := cmp.Diff(p.plain.record(of, node), p.ledger.Record(of, node)); diff != "" {
				t.Fatalf("%v on %s (-want +got):\n%s", of, node, diff)
			}
		}
	}
	p.checkMarks(t)
}

// checkMarks holds the lists to the records.
func (p *pair) checkMarks(t *rapid.T) {
	marks := p.ledger.Marks()
	for _, of := range revisions {
		for _, node := range nodes {
			if !p.plain.isMarked(of, node) {
				continue
			}
			r := p.plain.record(of, node)
			if len(marks) == 0 || marks[0].Node != node || marks[0].Revision != of || marks[0].Failures != r.Failures {
				t.Fatalf("%v is marked on %s, and next of Marks is %+v", of, node, marks)
			}
			blamed := p.plain.on(of, node)
			n := 0
			for _, k := range marks[0].Kinds {
				n += k.Failures
			}
			if since := marks[0].Since; n != r.Failures || since.IsZero() || since.Before(blamed[0].At) {
				t.Fatalf("the mark %+v does not fit %+v", marks[0], blamed)
			}
			if elsewhere := p.plain.succeededBeside(of, node); marks[0].Elsewhere != elsewhere {
				t.Fatalf("%v has succeeded on another node than %s: %t", of, node, elsewhere)
			}
			marks = marks[1:]
		}
	}
	if len(marks) > 0 {
		t.Fatalf("too many marks: %+v", marks)
	}
}

func TestLedgerIsItsPlainForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { t.Repeat(newPair(t).actions()) })
}
