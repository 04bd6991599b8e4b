// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

// maxFailed bounds what is remembered of one kind of pods. The oldest is forgotten first.
const maxFailed = 4

// Failed remembers for which pods nobody can make way, until something changes. It is Treadmill's feasibility tracker (TV24), but that a
// kind says everything that decides where a pod may be, and that the position counts: who comes earlier has more pods after it.
type Failed struct {
	of map[string][]failed
}

type failed struct {
	demand   []int64
	position int
}

// Note says that nobody can make way for a pod of a kind, with a demand, at a position.
func (f *Failed) Note(kind string, demand []int64, position int) {
	if f.of == nil {
		f.of = make(map[string][]failed)
	}
	f.of[kind] = append(f.of[kind], failed{demand, position})
	if more := len(f.of[kind]) - maxFailed; more > 0 {
		f.of[kind] = f.of[kind][more:]
	}
}

// Hopeless reports whether nobody can make way for a pod: because that is so for one of its kind that requests no more of anything, and
// does not come after it.
func (f *Failed) Hopeless(kind string, demand []int64, position int) bool {
	for _, one := range f.of[kind] {
		if one.position <= position && covers(demand, one.demand) {
			return true
		}
	}
	return false
}

// Clear forgets everything.
func (f *Failed) Clear() { f.of = nil }

// covers reports whether a is at least b in each.
func covers(a, b []int64) bool {
	for i := range b {
		if i >= len(a) && b[i] > 0 || i < len(a) && a[i] < b[i] {
			return false
		}
	}
	return true
}
