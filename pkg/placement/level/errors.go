// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError is one thing that is wrong with levels, in pieces. It is the only
// kind of error this package returns.
//
// Its texts end up in events and conditions, next to whatever a user put into an
// annotation of up to 256 KiB. So everything in it that comes from the user is cut
// to a length that a person reads, and Error is one line whatever the input holds.
type SyntaxError struct {
	// Level counts the level from 1; 0 where no single level is to blame.
	Level int
	// Text is the level as it was written; "" where Level is 0.
	Text string
	// Part is the bad part of the text, and is empty where something is missing.
	Part string
	// Problem says what is wrong with the part, in words that read before it.
	Problem string
	// Allowed says what would be right.
	Allowed string
}

// maxQuoted bounds what is quoted of the input, in bytes. A valid label key of
// usual length passes uncut.
const maxQuoted = 100

// Error reads `level 1 "sprd=zone": unknown strategy "sprd": use …`.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	if e.Level > 0 {
		b.WriteString("level " + strconv.Itoa(e.Level) + " " + strconv.Quote(e.Text) + ": ")
	}
	b.WriteString(e.Problem)
	if e.Part != "" || e.Level == 0 {
		b.WriteString(" " + strconv.Quote(e.Part))
	}
	b.WriteString(": " + e.Allowed)
	return b.String()
}

// refuse makes the error for a part; the caller that knows the level adds it.
func refuse(problem, part, allowed string) *SyntaxError {
	return &SyntaxError{Part: cut(part), Problem: problem, Allowed: allowed}
}

// in says at which level the error is.
func (e *SyntaxError) in(number int, text string) *SyntaxError {
	e.Level, e.Text = number, cut(text)
	return e
}

// cut shortens a text from outside, never in the middle of a character.
func cut(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	end := maxQuoted
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
