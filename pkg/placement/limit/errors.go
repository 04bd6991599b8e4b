// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// SyntaxError is one thing that is wrong with limits, in pieces. It is the only kind
// of error this package returns. What in it comes from the user is cut to a length
// that a person reads, and Error is one line whatever the input holds: it ends up in
// events and conditions.
type SyntaxError struct {
	// Limit counts the limit from 1; 0 where no single limit is to blame.
	Limit int
	// Text is the limit as it was written; "" where Limit is 0.
	Text string
	// Part is the bad part of the text, and is empty where something is missing.
	Part string
	// Problem says what is wrong with the part, in words that read before it.
	Problem string
	// Allowed says what would be right.
	Allowed string
}

// maxQuoted bounds what is quoted of the input, in bytes.
const maxQuoted = 100

// Error reads `limit 1 "rack=two": invalid number of pods "two": a limit is …`.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	if e.Limit > 0 {
		b.WriteString("limit " + strconv.Itoa(e.Limit) + " " + strconv.Quote(e.Text) + ": ")
	}
	b.WriteString(e.Problem)
	if e.Part != "" || e.Limit == 0 {
		b.WriteString(" " + strconv.Quote(e.Part))
	}
	b.WriteString(": " + e.Allowed)
	return b.String()
}

// refuse makes the error for a part; the caller that knows the limit adds it.
func refuse(problem, part, allowed string) *SyntaxError {
	return &SyntaxError{Part: cut(part), Problem: problem, Allowed: allowed}
}

func tooMany(n int, text string) *SyntaxError {
	return refuse(strconv.Itoa(n)+" limits in", text, "use at most "+strconv.Itoa(MaxLimits))
}

// fromLevel takes over what package level says of a property: it owns the syntax.
func fromLevel(err error) *SyntaxError {
	if e, ok := errors.AsType[*level.SyntaxError](err); ok {
		return &SyntaxError{Part: e.Part, Problem: e.Problem, Allowed: e.Allowed}
	}
	return refuse(err.Error(), "", allowedLimit)
}

// in says in which limit the error is.
func (e *SyntaxError) in(number int, text string) *SyntaxError {
	e.Limit, e.Text = number, cut(text)
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
