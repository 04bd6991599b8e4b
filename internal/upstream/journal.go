// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"
	"sync"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
)

// maxJournal bounds the entries that are kept, and a reader that has read none of so many looks at
// all nodes. Between two cycles there are a few.
const maxJournal = 1 << 14

// journal is the names of the nodes that have changed, in the order in which the
// snapshots came to show it. It is safe for concurrent use.
type journal struct {
	mu      sync.Mutex
	entries []string
	first   uint64 // position of the first entry
}

var _ podcount.Changes = &journal{}

// newJournal returns one that has nothing for a reader that has read nothing: position 0 is
// before the first snapshot.
func newJournal() *journal { return &journal{first: 1} }

// Since implements podcount.Changes.
func (j *journal) Since(position uint64) (nodes []string, now uint64, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now = j.first + uint64(len(j.entries))
	if position < j.first {
		return nil, now, false
	}
	return slices.Clone(j.entries[position-j.first:]), now, true
}

// add notes what a new snapshot shows.
func (j *journal) add(nodes []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, nodes...)
	if over := len(j.entries) - maxJournal; over > 0 {
		// By half, or it would be moved for every entry from here on.
		over += maxJournal / 2
		over = min(over, len(j.entries))
		j.entries, j.first = slices.Delete(j.entries, 0, over), j.first+uint64(over)
	}
}

// lose has everybody look at all nodes.
func (j *journal) lose() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.first += uint64(len(j.entries)) + 1
	j.entries = nil
}
