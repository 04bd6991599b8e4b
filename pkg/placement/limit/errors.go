// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"errors"
	"strconv"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// SyntaxError is one thing that is wrong with limits, in pieces. It is the only kind of
// error this package returns.
type SyntaxError = syntax.Error

// noun is what errors call an entry of the list.
const noun = "limit"

// refuse makes the error for a part; the caller that knows the limit adds it.
func refuse(problem, part, allowed string) *SyntaxError { return syntax.Refuse(problem, part, allowed) }

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
