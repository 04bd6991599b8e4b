// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"time"
)

// Members is what one replica knows of all that are active, itself included. It is fed with lists of Leases, and
// is not safe for concurrent use.
type Members struct {
	holder string        // our identity
	settle time.Duration // how long it takes until we have seen what others have bound
	byName map[string]*member
	names  []string // those of the members, in order
	own    string   // our name, "" while we hold no Lease
	joined bool     // we have listed our own Lease
	// ready is since when nobody is waited for, zero while somebody is.
	ready time.Time
	// generation counts the members that have come, and underWay the bindings by the generation at which they began.
	generation int
	underWay   map[int]int
}

// member is a replica that holds a Lease.
type member struct {
	Lease
	seen       time.Time // when a renewal was seen last, by our clock
	generation int       // the first at which it was a member
	awaited    bool      // it has not acknowledged us and must, or leads
	over       bool      // its Lease has run out: it is none until that is renewed
}

// NewMembers returns those that a replica knows before it has listed any. It begins to place only when
// settle has passed since all others have acknowledged it.
func NewMembers(holder string, settle time.Duration) *Members {
	return &Members{holder: holder, settle: settle, byName: make(map[string]*member), underWay: make(map[int]int)}
}

// Observe takes note of a list of all Leases, which was asked for after the one before had come. Now is when the list
// has come, by a clock that is never set. It reports whether members have come or gone.
//
// A Lease that is not on the list is not gone: somebody may have deleted it under its holder, who may place until it
// would have run out.
func (m *Members) Observe(leases []Lease, now time.Time) (changed bool) {
	for _, l := range leases {
		switch is := m.byName[l.Name]; {
		case l.Holder == "":
			changed = changed || is != nil && !is.over
			delete(m.byName, l.Name)
		case is == nil, is.Holder != l.Holder, is.over && !is.Renewed.Equal(l.Renewed):
			m.generation++
			m.byName[l.Name] = &member{Lease: l, seen: now, generation: m.generation, awaited: l.Leads || !m.joined && l.Holder != m.holder}
			changed = true
		default:
			if !is.Renewed.Equal(l.Renewed) {
				is.seen = now
			}
			is.Lease = l
		}
	}
	m.names = nil
	for name, is := range m.byName {
		if !is.over && !now.Before(is.seen.Add(is.Duration)) {
			is.over, changed = true, true
		}
		if !is.over && !is.Leads {
			m.names = append(m.names, name)
		}
	}
	slices.Sort(m.names)
	m.findOwn(now)
	return changed
}

// findOwn looks for our own Lease, and for those that are waited for.
func (m *Members) findOwn(now time.Time) {
	m.own = ""
	for _, name := range m.names {
		if m.byName[name].Holder == m.holder {
			m.own, m.joined = name, true
		}
	}
	for _, is := range m.byName {
		is.awaited = is.awaited && !slices.Contains(is.Acknowledges, m.holder)
	}
	switch {
	case !m.joined || len(m.Awaited()) > 0:
		m.ready = time.Time{}
	case m.ready.IsZero():
		m.ready = now
	}
}

// Awaited are the holders that have not acknowledged us and must, and who leads, in order.
func (m *Members) Awaited() []string {
	return m.holders(func(is *member) bool { return is.awaited })
}

// Acknowledged are the holders that we may say we know: no binding is under way that began when they were
// not members. They are in order.
func (m *Members) Acknowledged() []string {
	oldest := m.generation
	for generation := range m.underWay {
		oldest = min(oldest, generation)
	}
	return m.holders(func(is *member) bool { return is.Holder != m.holder && !is.Leads && is.generation <= oldest })
}

func (m *Members) holders(those func(*member) bool) []string {
	var holders []string
	for _, is := range m.byName {
		if !is.over && those(is) {
			holders = append(holders, is.Holder)
		}
	}
	slices.Sort(holders)
	return holders
}

// Holder is our identity.
func (m *Members) Holder() string { return m.holder }

// Names are those of the members, in order. They must not be altered.
func (m *Members) Names() []string { return m.names }

// Active reports whether we may place what we own. Once we may, we may until our Lease runs out, or somebody leads.
func (m *Members) Active(now time.Time) bool {
	return m.own != "" && !m.ready.IsZero() && !now.Before(m.ready.Add(m.settle))
}

// Owns reports whether a workload is ours to place.
func (m *Members) Owns(workload string, now time.Time) bool {
	return m.Active(now) && Owner(workload, m.names) == m.own
}

// Begin notes that a binding begins, and returns what End wants to know.
func (m *Members) Begin() (generation int) {
	m.underWay[m.generation]++
	return m.generation
}

// End notes that it has ended.
func (m *Members) End(generation int) {
	if m.underWay[generation]--; m.underWay[generation] == 0 {
		delete(m.underWay, generation)
	}
}
