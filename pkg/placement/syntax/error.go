// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syntax is what the small languages of annotations share: the error that
// says what cannot be read, and words that are compared without regard to case.
package syntax

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is one thing that is wrong with a list of entries, in pieces.
//
// Its texts end up in events and conditions, next to whatever a user put into an
// annotation of up to 256 KiB. So everything in it that comes from the user is cut
// to a length that a person reads, and Error is one line whatever the input holds.
type Error struct {
	// Noun is what an entry of the list is called, such as "constraint".
	Noun string
	// Number counts the entry from 1; 0 where no single entry is to blame.
	Number int
	// Text is the entry as it was written; "" where Number is 0.
	Text string
	// Part is the bad part of the text, and is empty where something is missing.
	Part string
	// Problem returns what is wrong with the part, in words that read before it.
	Problem string
	// Allowed says what would be right.
	Allowed string
}

// maxQuoted bounds what is quoted of the input, in bytes. A label key of usual
// length with its value passes uncut.
const maxQuoted = 100

// Refuse makes the error for a part. The caller that knows the entry adds it with In.
func Refuse(problem, part, allowed string) *Error {
	return &Error{Part: Cut(part), Problem: problem, Allowed: allowed}
}

// In says in which entry the error is.
func (e *Error) In(noun string, number int, text string) *Error {
	e.Noun, e.Number, e.Text = noun, number, Cut(text)
	return e
}

// Error reads `constraint 1 "node.rol == worker": unknown key "node.rol": use …`.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Number > 0 {
		b.WriteString(e.Noun + " " + strconv.Itoa(e.Number) + " " + strconv.Quote(e.Text) + ": ")
	}
	b.WriteString(e.Problem)
	if e.Part != "" || e.Number == 0 {
		b.WriteString(" " + strconv.Quote(e.Part))
	}
	b.WriteString(": " + e.Allowed)
	return b.String()
}

// Cut shortens a text from outside to what an error quotes.
func Cut(s string) string { return CutTo(s, maxQuoted) }

// CutTo shortens a text to so many bytes, never in the middle of a character.
func CutTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
