// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostport

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError is one thing that is wrong with ports, in pieces. It is the only kind
// of error this package returns.
//
// Its texts end up in logs and events, next to whatever somebody put into an
// annotation of up to 256 KiB. So everything in it that comes from there is cut to a
// length that a person reads, and Error is one line whatever the input holds.
type SyntaxError struct {
	// Port counts the port from 1; 0 where no single one is to blame.
	Port int
	// Text is the port as it was written; "" where Port is 0.
	Text string
	// Part is the bad part of the text, and may be empty.
	Part string
	// Problem says what is wrong with the part, in words that read before it.
	Problem string
	// Allowed says what would be right.
	Allowed string
}

// maxQuoted bounds what is quoted of the input, in bytes.
const maxQuoted = 100

// Error reads `port 2 "22/tpc": unknown protocol "tpc": use …`.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	if e.Port > 0 {
		b.WriteString("port " + strconv.Itoa(e.Port) + " " + strconv.Quote(e.Text) + ": ")
	}
	b.WriteString(e.Problem + " " + strconv.Quote(e.Part) + ": " + e.Allowed)
	return b.String()
}

// refuse makes the error for a part; the caller that knows the port adds it.
func refuse(problem, part, allowed string) *SyntaxError {
	return &SyntaxError{Part: cut(part), Problem: problem, Allowed: allowed}
}

// in says at which port the error is.
func (e *SyntaxError) in(number int, text string) *SyntaxError {
	e.Port, e.Text = number, cut(text)
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
