// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// A record has bounded room. What is too long for it is made shorter in this order,
// and only as far as it must:
//
//  1. of a node it has the failures that say something: see failure.Telling
//  2. revisions are left out, by the rule of claims.go
//  3. the room that remains goes to single nodes of those, by when they failed

// Encode returns the record in at most so many bytes. Each revision is encoded by itself: how
// much there is need not be held in one piece, and is known before it is.
func (r *Record) Encode(limit int) ([]byte, error) {
	head, err := marshal(struct {
		Version  int      `json:"version"`
		Suspects []string `json:"suspects,omitempty"`
	}{r.Version, r.Suspects})
	if err != nil {
		return nil, err
	}
	begin, end := strings.TrimSuffix(string(head), "}")+`,"revisions":[`, "]}"
	room := limit - len(begin) - len(end) + len(comma) // after the last there is none
	texts, err := r.fit(room)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(begin), bytes.Join(texts, []byte(comma)), []byte(end)), nil
}

// comma is what is between two revisions, and two nodes.
const comma = ","

// fit are the revisions that have room, each as it is written, and what has room of the
// others.
func (r *Record) fit(room int) ([][]byte, error) {
	if texts, size, err := encodeAll(r.Revisions, room); err != nil || size <= room {
		return texts, err
	}
	short := make([]Revision, len(r.Revisions))
	for i := range r.Revisions {
		short[i] = r.Revisions[i].shorter()
	}
	texts, size, err := encodeAll(short, math.MaxInt)
	if err != nil || size <= room {
		return texts, err
	}
	claims := make([]Claim, len(short))
	for i := range short {
		claims[i] = Claim{Of: short[i].Of(), Failed: short[i].Newest(), Size: len(texts[i]) + len(comma), index: i}
	}
	whole, rest, room := Grant(claims, room)
	fitting := make([][]byte, 0, len(texts))
	for _, c := range whole {
		fitting = append(fitting, texts[c.index])
	}
	for _, c := range rest {
		text, err := short[c.index].cut(room - len(comma))
		if err != nil {
			return nil, err
		}
		if text != nil {
			fitting, room = append(fitting, text), room-len(text)-len(comma)
		}
	}
	return fitting, nil
}

// encodeAll encodes revisions one by one, and stops when there are more bytes than there is
// room for.
func encodeAll(revisions []Revision, room int) (texts [][]byte, size int, err error) {
	for i := range revisions {
		text, err := marshal(&revisions[i])
		if err != nil {
			return nil, 0, err
		}
		texts, size = append(texts, text), size+len(text)+len(comma)
		if size > room {
			break
		}
	}
	return texts, size, nil
}

// Decode returns what a text has, with an error an empty record: half of one would say
// what nobody has written. Any text may come, and what it has may be anything: that is
// for who restores it.
func Decode(text []byte) (*Record, error) {
	if len(text) == 0 {
		return &Record{}, nil
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return &Record{}, err
	}
	if r.Version > version {
		return &Record{}, fmt.Errorf("it is of version %d, and this scheduler knows version %d", r.Version, version)
	}
	return &r, nil
}

// shorter is a revision without the failures that say nothing new.
func (s *Revision) shorter() Revision {
	short := *s
	short.Nodes = slices.Clone(s.Nodes)
	isOwn := func(kind string) bool { return slices.Contains(s.Own, kind) }
	for i := range short.Nodes {
		short.Nodes[i].Failures = failure.Telling(short.Nodes[i].Failures, s.Threshold, isOwn)
	}
	return short
}

// cut is a revision with the nodes that failed last and have room, as it is written; nil if
// none has.
func (s *Revision) cut(room int) ([]byte, error) {
	some := *s
	some.Nodes = []failure.NodeHistory{}
	head, err := marshal(&some)
	if err != nil {
		return nil, err
	}
	some.Nodes, _ = Cut(s.Nodes, room-len(head), func(n *failure.NodeHistory) int {
		text, failed := marshal(n)
		err = cmp.Or(err, failed)
		return len(text) + len(comma)
	})
	if err != nil || len(some.Nodes) == 0 {
		return nil, err
	}
	return marshal(&some)
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

// Of is the revision that is saved.
func (s *Revision) Of() failure.Revision {
	return failure.Revision{Workload: s.Workload, Revision: s.Revision}
}

// Newest is when the revision last failed.
func (s *Revision) Newest() (at time.Time) {
	for i := range s.Nodes {
		at = podoutcome.Latest(at, newest(&s.Nodes[i]))
	}
	return at
}
