// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

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
			switch what {
			case 0, 1, 2:
				w.reconcile(false)
			case 3:
				w.reconcile(true)
			case 4, 5:
				w.replicate()
			case 6, 7:
				w.start()
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
