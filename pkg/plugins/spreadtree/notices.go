// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/nesting"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

const (
	// reasonIgnored is the reason of the event that says what of a pod's placement has no effect.
	reasonIgnored = "PlacementIgnored"
	// maxNotice is what the note of an event may have.
	maxNotice = 1024
	// maxNoticed bounds the notices that are remembered, so that none is given twice.
	maxNoticed = 4096
)

// notice is what was said to whom.
type notice struct{ regarding, text string }

// looked is whose pods were looked at for it, over which topology.
type looked struct {
	regarding, revision string
	topology            *tree.Topology
}

// notifyLocked says in an event on a pod's owner what of the pod's placement has no effect, once. One pod of a
// revision is looked at, and another when the nodes are other ones.
func (pl *SpreadTree) notifyLocked(pod *corev1.Pod, levels clusterview.Levels, t *tally) {
	recorder := pl.handle.EventRecorder()
	if recorder == nil || levels.Source == clusterview.FromDefaults {
		return
	}
	regarding := pl.identifier.Regarding(pod)
	at := looked{string(regarding.UID), pl.identifier.Identify(pod).Revision, t.Topology()}
	if _, seen := pl.looked.Get(at); seen {
		return
	}
	pl.looked.Add(at, nil)
	sentences := append(clusterview.Ignored(pod, levels), t.undecidedLevels()...)
	if len(sentences) == 0 {
		return
	}
	text := strings.Join(sentences, " ")
	if len(text) > maxNotice {
		text = text[:maxNotice-len("…")] + "…" // label keys and our own words have no other letters
	}
	of := notice{string(regarding.UID), text}
	if _, said := pl.noticed.Get(of); said {
		return
	}
	pl.noticed.Add(of, nil)
	recorder.Eventf(&regarding, nil, corev1.EventTypeWarning, reasonIgnored, "Scheduling", "%s", text)
}

// undecidedLevels says which levels of a tally decide nothing in this cluster.
func (t *tally) undecidedLevels() []string {
	var sentences []string
	for _, u := range t.undecided {
		sentences = append(sentences, sentence(t.Topology().Levels(), u))
	}
	return sentences
}

func sentence(levels []level.Level, u nesting.Undecided) string {
	property := levels[u.Level].Property
	if u.Below < 0 {
		return fmt.Sprintf("The level over %q decides nothing: no node has this label.", property)
	}
	above := levels[u.Below].Property
	return fmt.Sprintf("The level over %q decides nothing below the level over %q, which is finer: name it first.", property, above)
}
