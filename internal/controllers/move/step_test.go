// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "5000"})
	m.Run()
}

// world is a ReplicaSet, a pod of it that is moved, and their controllers, without an API server.
type world struct {
	phase           placementv1alpha1.MovePhase
	holder          holder
	leaving, marked bool
	wanted          int
	others          []other
	overdue         bool
	starts          bool // whether pods become ready at all
	evicting        bool // whether a disruption budget lets the pod be evicted
	scaled          bool // fewer pods are wanted than in the beginning
	taken           bool // the ReplicaSet has removed the pod that was handed back, or one that was there before, and need not have
	astray          bool // the other pod is where it should not be
	unready         bool // the pod that is moved is not ready
	away
}

// other is another pod of the ReplicaSet.
type other struct{ ready, since, marked bool }

// facts are as the reconciler reads them.
func (w *world) facts() facts {
	f := facts{phase: w.phase, holder: w.holder, leaving: w.leaving, wanted: w.wanted, unwanted: w.wanted == 0, all: len(w.others), marked: w.marked, overdue: w.overdue}
	for _, o := range w.others {
		if o.ready {
			f.ready++
		}
		f.extra, f.extraMarked = f.extra || o.since, f.extraMarked || o.marked
	}
	f.astray = w.astray && f.extra
	f.away, f.unready = w.away, w.unready
	f.back = f.disconnect && !f.silent && !w.unready
	if f.extra {
		f.extraReady = slices.ContainsFunc(w.others, func(o other) bool { return o.since && o.ready })
	}
	if w.holder == replicaSet && !w.leaving {
		f.all++
		if !w.unready {
			f.ready++
		}
	}
	if f.all != f.wanted {
		f.refusal = "the ReplicaSet is at work"
	}
	return f
}

// reconcile does what the reconciler does in one look: it writes the step, or acts. It may be killed before either.
func (w *world) reconcile(killed bool) {
	s := next(w.facts())
	if killed {
		return
	}
	if s.phase != w.phase {
		w.phase = s.phase
		return
	}
	switch s.action {
	case handOver:
		w.holder = ours
	case handBack:
		w.holder, w.marked = replicaSet, true
	case restoreCost:
		w.marked = false
	case markExtra, restoreExtra:
		for i := len(w.others) - 1; i >= 0; i-- {
			if o := &w.others[i]; s.action == markExtra && o.since || o.marked {
				o.marked = s.action == markExtra
				return
			}
		}
	case evict:
		if w.evicting {
			w.leaving = true
		}
	case wait:
	}
}

// replicate does one thing that the ReplicaSet's controller would do.
func (w *world) replicate() {
	own := len(w.others)
	if w.holder == replicaSet && !w.leaving {
		own++
	}
	switch {
	case own < w.wanted:
		w.others = append(w.others, other{since: true})
	case own > w.wanted:
		// Those that are not ready go first, and then those whose cost is lowest: that of the pod that was handed back is the highest.
		// Those that were there before are the cheaper ones, if nobody says otherwise.
		goes := 0
		for i, o := range w.others {
			if !o.ready || w.others[goes].ready && o.marked {
				goes = i
			}
		}
		silentGoes := w.unready && w.holder == replicaSet && (len(w.others) == 0 || w.others[goes].ready)
		if len(w.others) > 0 && (w.holder != replicaSet || w.marked) && !silentGoes {
			w.taken = w.taken || w.phase == placementv1alpha1.MoveUndoing && !w.scaled && !w.others[goes].since
			w.others = append(w.others[:goes:goes], w.others[goes+1:]...)
		} else {
			w.leaving = true
			w.taken = w.taken || w.phase == placementv1alpha1.MoveUndoing && !w.scaled
		}
	}
}

// common is what happens in any world; it is one of 8.
func (w *world) common(what int) {
	switch what {
	case 0, 1, 2:
		w.reconcile(false)
	case 3:
		w.reconcile(true)
	case 4, 5:
		w.replicate()
	case 6, 7:
		w.start()
	}
}

func (w *world) start() {
	for i := range w.others {
		if w.starts && !w.others[i].ready {
			w.others[i].ready = true
			return
		}
	}
}

// ready counts all pods that take traffic, whose ever they are.
func (w *world) ready() (n int) {
	for _, o := range w.others {
		if o.ready {
			n++
		}
	}
	if w.holder != nobody && !w.leaving && !w.unready {
		n++
	}
	return n
}

func (w *world) String() string { return fmt.Sprintf("%+v", *w) }

// Whatever happens in between, and wherever the controller is killed: there are never fewer ready pods than wanted, a Move ends, and
// the ReplicaSet has then as many pods as it wants.
func TestNeverFewerThanWanted(t *testing.T) {
	outcomes := make(map[placementv1alpha1.MovePhase]int)
	rapid.Check(t, func(t *rapid.T) {
		w := &world{wanted: rapid.IntRange(1, 4).Draw(t, "wanted"), holder: replicaSet, starts: rapid.Bool().Draw(t, "starts"), astray: rapid.Bool().Draw(t, "astray"), evicting: rapid.Bool().Draw(t, "evicting")}
		for range w.wanted - 1 {
			w.others = append(w.others, other{ready: true})
		}
		do := func(what int) {
			switch w.common(what); what {
			case 8:
				if w.leaving {
					w.holder, w.leaving = nobody, false
				}
			case 9:
				w.scaled = w.scaled || w.wanted > 1
				w.wanted = max(min(1, w.wanted), w.wanted-1)
			case 10:
				w.overdue = true
			case 11:
				w.evicting = true
			case 12:
				w.scaled, w.wanted = true, 0
			}
			if w.ready() < w.wanted {
				t.Fatalf("%d pods are ready, and %d are wanted: %v", w.ready(), w.wanted, w)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			do(rapid.IntRange(0, 12).Draw(t, "what"))
		}
		w.overdue = true
		for range 100 {
			for what := range 9 {
				do(what)
			}
		}
		outcomes[w.phase]++
		f := w.facts()
		if !w.phase.Ended() || f.all != f.wanted || w.marked && w.holder != nobody || w.holder == ours || w.taken || f.extraMarked {
			t.Fatalf("it has not ended well: %v", w)
		}
	})
	for _, phase := range []placementv1alpha1.MovePhase{placementv1alpha1.MoveDone, placementv1alpha1.MoveUndone} {
		if outcomes[phase] == 0 {
			t.Errorf("none ended as %s: %v", phase, outcomes)
		}
	}
}

// A pod of a Deployment that wants none any more goes at once, whatever its disruption budget wants.
func TestDeploymentThatIsScaledAway(t *testing.T) {
	for _, begun := range []placementv1alpha1.MovePhase{placementv1alpha1.MoveReplacing, placementv1alpha1.MoveEvicting} {
		w := &world{phase: begun, holder: ours, scaled: true}
		for range 10 {
			w.reconcile(false)
			w.replicate()
		}
		if w.phase != placementv1alpha1.MoveDone || !w.leaving {
			t.Errorf("from %s it comes to %v", begun, w)
		}
	}
}

// What cannot be begun, or is out of our hands, ends as Failed, and touches nothing.
func TestSteps(t *testing.T) {
	for name, tc := range map[string]struct {
		f    facts
		want step
	}{
		"a refusal is said":                           {facts{holder: replicaSet, refusal: "no"}, step{placementv1alpha1.MovePlanned, "no", wait}},
		"a refusal that lasts":                        {facts{holder: replicaSet, refusal: "no", late: true}, step{placementv1alpha1.MoveFailed, "it was not begun in time: no", wait}},
		"another owner":                               {facts{phase: placementv1alpha1.MoveReplacing, holder: anotherOwner}, step{placementv1alpha1.MoveFailed, "somebody else has become the controller of the pod", wait}},
		"deleted by somebody":                         {facts{holder: replicaSet, leaving: true}, step{placementv1alpha1.MoveFailed, "somebody else has deleted the pod", wait}},
		"a ReplicaSet that is gone":                   {facts{phase: placementv1alpha1.MoveUndoing, holder: ours, setGone: true}, step{placementv1alpha1.MoveEvicting, "the pod is being evicted", evict}},
		"a ReplicaSet that is gone, and the Move too": {facts{phase: placementv1alpha1.MoveEvicting, holder: ours, setGone: true, dropped: true, overdue: true}, step{placementv1alpha1.MoveDone, "the pod goes with what it was of", wait}},
		"a node that does not answer":                 {facts{phase: placementv1alpha1.MoveEvicting, holder: ours, leaving: true, overdue: true}, step{placementv1alpha1.MoveDone, "the pod is ending, and its node does not say that it has", wait}},
		"gone while it was handed back":               {facts{phase: placementv1alpha1.MoveUndoing, holder: nobody, extra: true, extraMarked: true}, step{placementv1alpha1.MoveUndoing, "the other one stays", restoreExtra}},
		"nothing more is done at the end":             {facts{phase: placementv1alpha1.MoveUndone, holder: ours, wanted: 1}, step{phase: placementv1alpha1.MoveUndone}},
	} {
		if got := next(tc.f); got != tc.want {
			t.Errorf("%s: got  %+v\nwant %+v", name, got, tc.want)
		}
	}
}

// What was to be handed over, and cannot be or must not be any more, ends.
func TestHandingOver(t *testing.T) {
	for name, tc := range map[string]struct {
		facts facts
		want  placementv1alpha1.MovePhase
		acts  action
	}{
		"nothing is against it":                {facts{}, placementv1alpha1.MoveHandingOver, handOver},
		"the Deployment is at work":            {facts{refusal: "it is being updated"}, placementv1alpha1.MovePlanned, wait},
		"the Deployment is at work for long":   {facts{refusal: "it is being updated", late: true}, placementv1alpha1.MoveFailed, wait},
		"the pod could not be changed in time": {facts{overdue: true}, placementv1alpha1.MoveFailed, wait},
	} {
		tc.facts.phase, tc.facts.holder = placementv1alpha1.MoveHandingOver, replicaSet
		if s := next(tc.facts); s.phase != tc.want || s.action != tc.acts || s.message == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A pod whose node falls silent again while it is handed back is kept: its ReplicaSet would remove it as the one that is not ready.
func TestSilentAgainWhileHandedBack(t *testing.T) {
	f := facts{phase: placementv1alpha1.MoveUndoing, holder: ours, wanted: 1, all: 1, ready: 1, extra: true, extraReady: true, unready: true, away: away{disconnect: true, silent: true}}
	if s := next(f); s.phase != placementv1alpha1.MoveWaiting || s.action != wait {
		t.Errorf("it is %+v", s)
	}
	f.extraMarked = true
	if s := next(f); s.action != restoreExtra {
		t.Errorf("with the other one marked it is %+v", s)
	}
}

// Whenever a node falls silent and comes back, and wherever the controller is killed: no pod that is ready goes while it is wanted, and
// when all is quiet the ReplicaSet has as many as it wants. While the node does not answer the pod is not evicted.
func TestPodOfASilentNode(t *testing.T) {
	outcomes := make(map[placementv1alpha1.MovePhase]int)
	rapid.Check(t, func(t *rapid.T) {
		w := &world{wanted: rapid.IntRange(1, 4).Draw(t, "wanted"), holder: replicaSet, starts: rapid.Bool().Draw(t, "starts"), evicting: rapid.Bool().Draw(t, "evicting")}
		w.away, w.unready = away{disconnect: true, silent: true, replacementStays: rapid.Bool().Draw(t, "replacementStays")}, true
		for range w.wanted - 1 {
			w.others = append(w.others, other{ready: true})
		}
		do := func(what int) {
			enough, leaving := w.ready() >= w.wanted, w.leaving
			switch w.common(what); what {
			case 8:
				if w.leaving && !w.silent {
					w.holder, w.leaving = nobody, false
				}
			case 9:
				w.overdue = true
			case 10:
				w.evicting = true
			case 11:
				w.silent = false
			case 12:
				w.unready = w.silent || w.leaving
			case 13:
				w.long = !w.silent
			}
			if enough && w.ready() < w.wanted {
				t.Fatalf("%d pods are ready, and %d are wanted: %v", w.ready(), w.wanted, w)
			}
			if w.silent && w.leaving && !leaving && w.holder == ours {
				t.Fatalf("the pod is evicted while its node does not answer: %v", w)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			do(rapid.IntRange(0, 13).Draw(t, "what"))
		}
		for what := range 14 { // the node is back, and who can start does
			do(what)
		}
		w.starts = true
		for range 100 {
			for _, what := range []int{0, 4, 6, 8, 12} {
				do(what)
			}
		}
		outcomes[w.phase]++
		f := w.facts()
		if !w.phase.Ended() || f.all != f.wanted || w.marked && w.holder != nobody || w.holder == ours || f.extraMarked {
			t.Fatalf("it has not ended well: %v", w)
		}
	})
	for _, phase := range []placementv1alpha1.MovePhase{placementv1alpha1.MoveDone, placementv1alpha1.MoveUndone, placementv1alpha1.MoveFailed} {
		if outcomes[phase] == 0 {
			t.Errorf("none ended as %s: %v", phase, outcomes)
		}
	}
}

// Vector NV16, as far as it has a meaning where the ReplicaSet places and a Move keeps: one is of a Deployment of three.
func TestVector_NV16(t *testing.T) {
	const waiting, replacing = placementv1alpha1.MoveWaiting, placementv1alpha1.MoveReplacing
	const undoing, evicting = placementv1alpha1.MoveUndoing, placementv1alpha1.MoveEvicting
	silent, back := away{disconnect: true, silent: true}, away{disconnect: true, back: true}
	stays := back
	stays.replacementStays = true
	for name, tc := range map[string]struct {
		f    facts
		want placementv1alpha1.MovePhase
	}{
		"running on a silent node: another one is placed":    {facts{away: silent, all: 3, ready: 2, extra: true}, replacing},
		"the other one runs: nothing more is placed":         {facts{away: silent, all: 3, ready: 3, extra: true, extraReady: true}, waiting},
		"the other one cannot be placed for long":            {facts{away: silent, all: 3, ready: 2, extra: true, overdue: true}, waiting},
		"back, without a replacement":                        {facts{away: back, all: 2, ready: 2}, undoing},
		"back, the original is picked":                       {facts{away: back, all: 3, ready: 3, extra: true}, undoing},
		"back, the replacement is picked":                    {facts{away: stays, all: 3, ready: 3, extra: true}, evicting},
		"back, the replacement is picked, and is pending":    {facts{away: stays, all: 3, ready: 2, extra: true}, replacing},
		"back, and the replacement of the replacement stays": {facts{away: back, all: 3, ready: 3}, evicting},
		"failed, with a replacement":                         {facts{away: away{disconnect: true, long: true}, all: 3, ready: 3, extra: true, unready: true}, evicting},
		"failed, without a replacement":                      {facts{away: away{disconnect: true, long: true}, all: 2, ready: 2, unready: true}, replacing},
		"failed, and so has the replacement":                 {facts{away: away{disconnect: true, long: true}, all: 3, ready: 2, extra: true, unready: true}, replacing},
		"of an older revision, on a silent node":             {facts{away: away{disconnect: true, silent: true, outdated: true}}, evicting},
		"the Move is deleted while the node does not answer": {facts{away: silent, all: 3, ready: 3, extra: true, dropped: true, overdue: true}, evicting},
		"back, the replacement is picked, and never starts":  {facts{away: away{disconnect: true, back: true, long: true, replacementStays: true}, all: 3, ready: 2, extra: true}, undoing},
		"the Move is deleted when it is back":                {facts{away: stays, all: 3, ready: 3, extra: true, dropped: true, overdue: true}, undoing},
		"its eviction is refused":                            {facts{phase: evicting, away: stays, all: 3, ready: 3, extra: true}, evicting},
		"its eviction is refused for long":                   {facts{phase: evicting, away: away{disconnect: true, back: true, long: true, replacementStays: true}, all: 3, ready: 3, extra: true}, undoing},
		"its eviction is refused, and the Move is deleted":   {facts{phase: evicting, away: stays, all: 3, ready: 3, extra: true, dropped: true, overdue: true}, undoing},
	} {
		t.Run(name, func(t *testing.T) {
			tc.f.phase, tc.f.holder = cmp.Or(tc.f.phase, replacing), ours
			if !tc.f.outdated {
				tc.f.wanted = 3
			}
			if got := next(tc.f); got.phase != tc.want {
				t.Errorf("got  %+v\nwant %s", got, tc.want)
			}
		})
	}
}
