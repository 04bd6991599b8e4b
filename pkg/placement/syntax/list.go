// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"cmp"
	"strconv"
	"strings"
)

// Separator is between two entries of a list.
const Separator = ","

// Entries is what a list has.
type Entries struct {
	// Noun is what one entry is called, such as "constraint".
	Noun string
	// Max is how many there may be.
	Max int
	// Allowed says how one is written.
	Allowed string
	// Fewer says what to do where there are too many; "" for "use at most Max".
	Fewer string
}

// TooMany is the error for so many entries in a text, nil if they are not too many.
func (e Entries) TooMany(n int, text string) *Error {
	if n <= e.Max {
		return nil
	}
	return Refuse(strconv.Itoa(n)+" "+e.Noun+"s in", text, cmp.Or(e.Fewer, "use at most "+strconv.Itoa(e.Max)))
}

// ParseList reads a list, at least one entry. White space around the separators is dropped. Parse
// reads one entry, which is not empty, and is given those before it. The error is an *Error that
// names the first entry that is wrong: nothing is skipped.
func ParseList[T any](s string, of Entries, parse func(before []T, text string) (T, *Error)) ([]T, error) {
	if strings.TrimSpace(s) == "" {
		return nil, Refuse("no "+of.Noun+"s in", s, of.Allowed)
	}
	if err := of.TooMany(strings.Count(s, Separator)+1, s); err != nil {
		return nil, err
	}
	var all []T
	for text := range strings.SplitSeq(s, Separator) {
		text = strings.TrimSpace(text)
		if text == "" {
			return nil, Refuse("empty "+of.Noun, text, "remove the comma, or "+of.Allowed).In(of.Noun, len(all)+1, text)
		}
		one, err := parse(all, text)
		if err != nil {
			return nil, err.In(of.Noun, len(all)+1, text)
		}
		all = append(all, one)
	}
	return all, nil
}
