// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"fmt"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// holder is whose the pod is.
type holder int

const (
	nobody       holder = iota // it is gone
	replicaSet                 // its ReplicaSet's, or its StatefulSet's
	ours                       // the Move's
	anotherOwner               // somebody else's
)

// facts are what the next step depends on.
type facts struct {
	phase placementv1alpha1.MovePhase
	// The pod that is moved.
	holder  holder
	leaving bool // it is being deleted
	// Its ReplicaSet, but for the pod while that is handed over.
	setGone            bool
	wanted, all, ready int
	// unwanted says that the Deployment wants no pods at all.
	unwanted bool
	// refusal is why nothing is begun, "" for no reason.
	refusal string
	// needless is why a pod is not to be evicted first at all any more, "" for no reason.
	needless string
	// marked says that the pod has the deletion cost with which it was handed back.
	marked  bool
	overdue bool
	// dropped says that somebody has deleted the Move.
	dropped bool
	// late says that it should have been begun by now.
	late bool
	// unready says that the pod is not ready itself: to evict it takes nothing away.
	unready bool
	// extra says that a pod has come in the place of this one, extraReady that it is ready, and extraMarked that it is marked as the
	// one to go if this one is handed back.
	extra, extraReady, extraMarked bool
	// othersTurn says that the ReplicaSet is to remove another pod first, for another Move.
	othersTurn bool
	// astray says that the replacement is in the domain that it must not be in.
	astray bool
	// first says that the pod is evicted before another one comes in its place, and stuck that it should have ended by now.
	first, stuck bool
	// away is how far the pod is from its node's being back, for a Move with the reason Disconnect.
	away
}

// action is what is to be done to objects other than the Move.
type action int

const (
	wait action = iota
	handOver
	evict
	handBack
	restoreCost
	markExtra
	restoreExtra
)

// step is what is next: first the phase and the message are written if they are others, and then, when they stand, it is acted.
type step struct {
	phase   placementv1alpha1.MovePhase
	message string
	action  action
}

// next returns the step that follows from facts.
//
// A phase is written before what it says is done. So the pod tells whether it was done: in HandingOver by whose it is, in
// Undoing likewise.
func next(f facts) step {
	switch {
	case f.phase.Ended():
		return step{phase: f.phase}
	case f.first:
		return f.evictedFirst()
	case f.extraMarked && (f.leaving || f.holder == nobody || f.holder == anotherOwner):
		return step{phase: f.phase, message: "the other one stays", action: restoreExtra}
	case f.holder == nobody:
		return step{phase: placementv1alpha1.MoveDone, message: "the pod is gone"}
	case f.holder == anotherOwner:
		return step{phase: placementv1alpha1.MoveFailed, message: "somebody else has become the controller of the pod"}
	case f.leaving && f.holder == ours && (f.overdue || f.silent):
		// A node that does not answer keeps it for as long as it likes. It is replaced.
		return step{phase: placementv1alpha1.MoveDone, message: "the pod is ending, and its node does not say that it has"}
	case f.leaving && f.holder == replicaSet && f.unwanted && f.phase == placementv1alpha1.MoveUndoing:
		return step{phase: placementv1alpha1.MoveDone, message: "the pod goes with the others, as its Deployment wants none"}
	case f.leaving && f.phase == placementv1alpha1.MoveEvicting:
		return step{phase: f.phase, message: "the pod is ending"}
	case f.leaving && f.holder == replicaSet:
		return step{phase: placementv1alpha1.MoveFailed, message: "somebody else has deleted the pod"}
	case f.leaving:
		return step{phase: placementv1alpha1.MoveEvicting, message: "the pod is ending"}
	case f.holder == ours:
		return f.held()
	}
	return f.unheld()
}

// unheld is the step for a pod that is its ReplicaSet's.
func (f *facts) unheld() step {
	switch f.phase {
	case placementv1alpha1.MoveUndoing:
		if f.all > f.wanted {
			return step{phase: f.phase, message: fmt.Sprintf("the ReplicaSet has %d pods and wants %d: it removes what is too many", f.all, f.wanted)}
		}
		if f.extraMarked {
			return step{phase: f.phase, message: "the pod is its ReplicaSet's again", action: restoreExtra}
		}
		if f.marked {
			return step{phase: f.phase, message: "the pod is its ReplicaSet's again", action: restoreCost}
		}
		message := "the pod is its ReplicaSet's again, because the other one was not ready in time, or not where it should be, or a disruption budget did not let the pod go"
		if f.disconnect {
			message = "the pod is back, and its ReplicaSet's again"
		}
		return step{phase: placementv1alpha1.MoveUndone, message: message}
	case "", placementv1alpha1.MovePlanned, placementv1alpha1.MoveHandingOver:
		// Whatever was true when the phase was written may be so no longer: a pod that cannot be changed, or must not be any more, is not
		// waited for.
		switch {
		case f.disconnect && !f.silent:
			return step{phase: placementv1alpha1.MoveFailed, message: "the node of the pod answers again"}
		case f.overdue && f.refusal == "":
			return step{phase: placementv1alpha1.MoveFailed, message: "it was not begun in time: the pod could not be changed"}
		case f.overdue, f.late && f.refusal != "":
			return step{phase: placementv1alpha1.MoveFailed, message: "it was not begun in time: " + f.refusal}
		case f.refusal != "":
			return step{phase: placementv1alpha1.MovePlanned, message: f.refusal}
		}
		return step{phase: placementv1alpha1.MoveHandingOver, message: "the pod is being handed over", action: handOver}
	}
	return step{phase: placementv1alpha1.MoveFailed, message: "somebody else has handed the pod back"}
}

// held is the step for a pod that is the Move's.
func (f *facts) held() step {
	enough := f.setGone || f.ready >= f.wanted || f.unready && f.extraReady
	switch {
	case f.setGone && f.dropped:
		return step{phase: placementv1alpha1.MoveDone, message: "the pod goes with what it was of"}
	case f.unwanted:
		// A disruption budget that wants a pod would keep this one. It does not bind the ReplicaSet.
		return step{phase: placementv1alpha1.MoveUndoing, message: "the pod is being handed back: its Deployment wants none", action: handBack}
	case f.phase == placementv1alpha1.MoveUndoing && f.disconnect && f.silent && !f.setGone && f.extraMarked:
		// Handed back now, it would be the one that is not ready, and its ReplicaSet would remove it.
		return step{phase: f.phase, message: "its node does not answer again", action: restoreExtra}
	case f.phase == placementv1alpha1.MoveUndoing && f.disconnect && f.silent && !f.setGone:
		return f.kept(enough)
	case f.phase == placementv1alpha1.MoveUndoing && !f.setGone && f.othersTurn && !f.extraMarked:
		return step{phase: f.phase, message: "another pod is handed back first"}
	case f.phase == placementv1alpha1.MoveUndoing && !f.setGone && f.extra && !f.extraMarked:
		// Otherwise the ReplicaSet might remove one that has nothing to do with it.
		return step{phase: f.phase, message: "the pod is being handed back", action: markExtra}
	case f.phase == placementv1alpha1.MoveUndoing && !f.setGone:
		return step{phase: f.phase, message: "the pod is being handed back", action: handBack}
	case enough && f.phase == placementv1alpha1.MoveEvicting && !f.givenUp():
		return step{phase: f.phase, message: "the pod is being evicted", action: evict}
	case f.disconnect && !f.setGone:
		return f.kept(enough)
	case f.astray && f.phase != placementv1alpha1.MoveEvicting && !f.setGone:
		return step{phase: placementv1alpha1.MoveUndoing, message: "the pod is being handed back: the other one is no better placed", action: handBack}
	case enough && f.phase != placementv1alpha1.MoveEvicting:
		return step{phase: placementv1alpha1.MoveEvicting, message: "the pod is being evicted", action: evict}
	case f.setGone:
		// There is nobody to hand it back to.
		return step{phase: placementv1alpha1.MoveEvicting, message: "the pod is being evicted, its ReplicaSet is gone", action: evict}
	case f.overdue:
		return step{phase: placementv1alpha1.MoveUndoing, message: "the pod is being handed back", action: handBack}
	}
	return step{phase: placementv1alpha1.MoveReplacing, message: fmt.Sprintf("%d of %d other pods are ready", f.ready, f.wanted)}
}
