// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// A record has bounded room. What is too long for it is made shorter in this order,
// and only as far as it must:
//
//  1. of a node it has as many failures as mark it, the newest, and one of each kind
//     that is the workload's own: that many say as much as more would
//  2. revisions are left out: of each namespace those that failed last come first, and
//     among namespaces those that ask for least
//  3. the room that remains goes to single nodes of those, by when they failed

// encode returns the record in at most so many bytes.
func (r *record) encode(limit int) ([]byte, error) {
	text, err := r.join(r.Revisions)
	if err != nil || len(text) <= limit {
		return text, err
	}
	short := make([]revisionSaved, len(r.Revisions))
	for i := range r.Revisions {
		short[i] = r.Revisions[i].shorter()
	}
	if text, err = r.join(short); err != nil || len(text) <= limit {
		return text, err
	}
	fitting, err := fit(short, limit)
	if err != nil {
		return nil, err
	}
	return r.join(fitting)
}

// decode returns what a text has, with an error an empty record: half of one would say
// what nobody has written. Any text may come, and what it has may be anything: that is
// for who restores it.
func decode(text []byte) (*record, error) {
	if len(text) == 0 {
		return &record{}, nil
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return &record{}, err
	}
	if r.Version > recordVersion {
		return &record{}, fmt.Errorf("it is of version %d, and this scheduler knows version %d", r.Version, recordVersion)
	}
	return &r, nil
}

// join returns a record of some revisions.
func (r *record) join(revisions []revisionSaved) ([]byte, error) {
	if revisions == nil {
		revisions = []revisionSaved{}
	}
	return marshal(&record{Version: r.Version, Revisions: revisions})
}

// shorter is a revision without the failures that say nothing new.
func (s *revisionSaved) shorter() revisionSaved {
	short := *s
	short.Nodes = slices.Clone(s.Nodes)
	for i := range short.Nodes {
		short.Nodes[i].Failures = s.telling(short.Nodes[i].Failures)
	}
	return short
}

// telling are the newest failures of a node, in order: as many as mark it, and of the
// workload's own one of each kind.
func (s *revisionSaved) telling(failures []failure.Failure) (kept []failure.Failure) {
	blamed := 0
	var own []string
	for _, f := range slices.Backward(failures) {
		switch {
		case !slices.Contains(s.own, f.Kind) && blamed < max(1, s.threshold):
			blamed++
		case slices.Contains(s.own, f.Kind) && !slices.Contains(own, f.Kind):
			own = append(own, f.Kind)
		default:
			continue
		}
		kept = append(kept, f)
	}
	slices.Reverse(kept)
	return kept
}

// share is a revision, how many bytes it takes, and how many its namespace up to it.
type share struct {
	revisionSaved
	size, upTo int
}

// shares are the revisions in the order in which they have a right to room: of each
// namespace those that failed last come first, and among namespaces those that have
// asked for least by then. What fails in one does not take the room of another.
func shares(revisions []revisionSaved) ([]share, error) {
	revisions = slices.Clone(revisions)
	slices.SortStableFunc(revisions, func(a, b revisionSaved) int { return b.newest().Compare(a.newest()) })
	all := make([]share, len(revisions))
	asked := make(map[string]int)
	for i := range revisions {
		size, err := sizeOf(&revisions[i])
		if err != nil {
			return nil, err
		}
		namespace := namespaceOf(failure.Revision{Workload: revisions[i].Workload})
		asked[namespace] += size
		all[i] = share{revisions[i], size, asked[namespace]}
	}
	slices.SortStableFunc(all, func(a, b share) int { return cmp.Compare(a.upTo, b.upTo) })
	return all, nil
}

// fit are the revisions that have room, and what has room of the others.
func fit(revisions []revisionSaved, limit int) ([]revisionSaved, error) {
	all, err := shares(revisions)
	if err != nil {
		return nil, err
	}
	room := limit - len(`{"version":,"revisions":[]}`) - len(fmt.Sprint(recordVersion))
	var whole, rest []revisionSaved
	for _, s := range all {
		if s.size > room {
			rest = append(rest, s.revisionSaved)
			continue
		}
		whole, room = append(whole, s.revisionSaved), room-s.size
	}
	for i := range rest {
		size, err := rest[i].cut(room)
		if err != nil {
			return nil, err
		}
		if len(rest[i].Nodes) > 0 {
			whole, room = append(whole, rest[i]), room-size
		}
	}
	return whole, nil
}

// cut leaves of a revision the nodes that failed last and have room. It returns the
// room that they take.
func (s *revisionSaved) cut(room int) (size int, err error) {
	nodes := slices.Clone(s.Nodes)
	slices.SortStableFunc(nodes, func(a, b failure.NodeHistory) int { return newest(&b).Compare(newest(&a)) })
	s.Nodes = []failure.NodeHistory{}
	if size, err = sizeOf(s); err != nil {
		return 0, err
	}
	for i := range nodes {
		more, err := sizeOf(&nodes[i])
		if err != nil {
			return 0, err
		}
		if size+more <= room {
			s.Nodes, size = append(s.Nodes, nodes[i]), size+more
		}
	}
	return size, nil
}

// marshal writes in ASCII alone. What is applied is read as YAML, which refuses some
// characters that JSON takes: with one of them in the record that was read, none could
// be written any more.
func marshal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	isPlain := func(r rune) bool { return r < unicode.MaxASCII }
	if err != nil || !bytes.ContainsFunc(text, func(r rune) bool { return !isPlain(r) }) {
		return text, err
	}
	var plain []byte
	for _, r := range string(text) {
		if isPlain(r) {
			plain = append(plain, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			plain = fmt.Appendf(plain, `\u%04x`, unit)
		}
	}
	return plain, nil
}

// sizeOf is how many bytes something takes, and what is between it and the next.
func sizeOf(v any) (int, error) {
	text, err := marshal(v)
	return len(text) + len(","), err
}

// newest is when the revision last failed.
func (s *revisionSaved) newest() (at time.Time) {
	for i := range s.Nodes {
		at = latest(at, newest(&s.Nodes[i]))
	}
	return at
}

// newest is when a node last failed. Failures are in order.
func newest(n *failure.NodeHistory) (at time.Time) {
	if last := len(n.Failures) - 1; last >= 0 {
		at = n.Failures[last].At
	}
	return at
}
