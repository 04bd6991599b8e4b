// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Revision is one version of a workload. The texts mean nothing to the ledger.
type Revision struct{ Workload, Revision string }

// Compare orders revisions by workload, then by revision.
func (r Revision) Compare(o Revision) int {
	return cmp.Or(strings.Compare(r.Workload, o.Workload), strings.Compare(r.Revision, o.Revision))
}

// Failure is one failure of one pod. Pod and Key together name it: recorded twice, it is
// one failure, at the earlier of the times.
type Failure struct {
	// Pod is the pod's UID.
	Pod string `json:"pod"`
	// Key tells the failures of one pod apart.
	Key string `json:"key,omitempty"`
	// Kind is what went wrong, in a word: failures of one kind have one cause.
	Kind string `json:"kind,omitempty"`
	// At is when.
	At time.Time `json:"at"`
}

// compare orders failures by time. The rest makes the order total, so that what is
// kept and what is forgotten does not depend on who came first.
func (f Failure) compare(o Failure) int {
	return cmp.Or(f.At.Compare(o.At), strings.Compare(f.Pod, o.Pod), strings.Compare(f.Key, o.Key), strings.Compare(f.Kind, o.Kind))
}

func (f Failure) isSame(o Failure) bool { return f.Pod == o.Pod && f.Key == o.Key }

// insert adds a failure to some that are in order. It reports whether that changed
// anything. It does not write to what it is given, which Capture may have handed out.
func insert(failures []Failure, f Failure) ([]Failure, bool) {
	if i := slices.IndexFunc(failures, f.isSame); i >= 0 {
		if failures[i].compare(f) <= 0 {
			return failures, false
		}
		failures = slices.Concat(failures[:i], failures[i+1:])
	}
	i, _ := slices.BinarySearchFunc(failures, f, Failure.compare)
	return slices.Concat(failures[:i], []Failure{f}, failures[i:]), true
}

// Telling are the newest failures of a node, in order: as many as mark it, and of the
// kinds that are the workload's own one each. That many say as much as more would.
func Telling(failures []Failure, threshold int, isOwn func(kind string) bool) (kept []Failure) {
	blamed := 0
	var own []string
	for _, f := range slices.Backward(failures) {
		switch {
		case !isOwn(f.Kind) && blamed < max(1, threshold):
			blamed++
		case isOwn(f.Kind) && !slices.Contains(own, f.Kind):
			own = append(own, f.Kind)
		default:
			continue
		}
		kept = append(kept, f)
	}
	slices.Reverse(kept)
	return kept
}
