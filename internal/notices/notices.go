// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notices says things in Events once, and not with each pod of an owner.
package notices

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
)

// Apart is the time between two Events of an object that is as it was, with one reason, if what they say differs. Of those that are closer client-go
// would only count the second, under the note of the first, and ask for a right that the controller has not. It forgets an Event when it is
// six minutes old, and looks for such every six minutes.
const Apart = 13 * time.Minute

const (
	// maxNote is how many bytes the note of an Event may have. The API server refuses longer ones.
	maxNote = 1024
	// maxGiven bounds the notices that are remembered. One that is forgotten may be given again.
	maxGiven = 4096
)

// Notices are those that were given. They are safe for concurrent use.
type Notices struct {
	recorder events.EventRecorder
	given    *lru.Cache
}

// notice is what was said of whom.
type notice struct{ regarding, reason, text string }

// New returns notices that a recorder takes, nil for none.
func New(recorder events.EventRecorder) *Notices { return &Notices{recorder, lru.New(maxGiven)} }

// Give gives a notice of an object, unless it was given. A text that is too long is cut.
func (n *Notices) Give(regarding *corev1.ObjectReference, eventType, reason, text string) {
	if n.recorder == nil {
		return
	}
	if len(text) > maxNote {
		text = text[:maxNote-len("…")] + "…" // label keys and our own words have no other letters
	}
	of := notice{string(regarding.UID), reason, text}
	if _, given := n.given.Get(of); given {
		return
	}
	n.given.Add(of, nil)
	n.recorder.Eventf(regarding, nil, eventType, reason, "Scheduling", "%s", text)
}
