// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"maps"
	"slices"
)

// MadeWay remembers who made way for whom. The order depends on which pods run, because of equals those come first. So a pod that made
// way may come before the one that it made way for when a third one has its place, though nobody wants anything else. Of two such pods
// the second stays: they would take turns otherwise.
//
// That holds until demand, reservations or capacity are others. A stamp says which they are.
type MadeWay struct {
	of map[string][]madeWay
}

type madeWay struct {
	stamp  uint64
	victim string
}

// Note says that a victim has made way for a preemptor. A victim is named by what it has in common with the pod that is made in its
// place.
func (m *MadeWay) Note(stamp uint64, preemptor, victim string) {
	if m.of == nil {
		m.of = make(map[string][]madeWay)
	}
	// What was noted with another stamp does not hold any more.
	its := slices.DeleteFunc(m.of[preemptor], func(one madeWay) bool { return one.stamp != stamp })
	m.of[preemptor] = append(its, madeWay{stamp, victim})
}

// For reports whether the like of a pod has made way for another one.
func (m *MadeWay) For(stamp uint64, other, pod string) bool {
	for _, one := range m.of[other] {
		if one.stamp == stamp && one.victim == pod {
			return true
		}
	}
	return false
}

// Keep forgets all preemptors but those of which is says that they are still there.
func (m *MadeWay) Keep(is func(preemptor string) bool) {
	maps.DeleteFunc(m.of, func(preemptor string, _ []madeWay) bool { return !is(preemptor) })
}
