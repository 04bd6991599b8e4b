// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"errors"
	"strconv"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

const (
	allowedLimit = "use PROPERTY=PODS, such as kubernetes.io/hostname=1"
	allowedPods  = "a limit is a whole number of pods from 1 to 1000000"
)

var entries = syntax.Entries{Noun: "limit", Max: MaxLimits, Allowed: allowedLimit}

// Parse reads limits, as in
//
//	kubernetes.io/hostname=1,example.com/rack=2
//
// Each is a property, in any spelling of level.ParseProperty, and the most pods in
// one domain of it. White space around commas and "=" is dropped. A property may be
// named once. Parse returns at least one limit; the limits are valid, and in the order
// of the text. The error is a *syntax.Error that names the first thing that is wrong.
// No limit is skipped, because a limit that is skipped would not be enforced.
func Parse(s string) ([]Limit, error) {
	return syntax.ParseList(s, entries, parseLimit)
}

func parseLimit(before []Limit, text string) (Limit, *syntax.Error) {
	property, pods, ok := strings.Cut(text, "=")
	property, pods = strings.TrimSpace(property), strings.TrimSpace(pods)
	switch {
	case property == "":
		return Limit{}, syntax.Refuse("no property before", "=", allowedLimit)
	case !ok || pods == "":
		return Limit{}, syntax.Refuse("no number of pods after", property, allowedLimit)
	}
	p, err := level.ParseProperty(property)
	if err != nil {
		return Limit{}, fromLevel(err)
	}
	n, ok := parsePods(pods)
	if !ok {
		return Limit{}, syntax.Refuse("invalid number of pods", pods, allowedPods)
	}
	return Limit{Property: p, Pods: n}, checkNotNamed(before, p)
}

// parsePods takes digits only: signs, exponents and other bases would be read in one
// place and not in the next.
func parsePods(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && isPods(int64(n))
}

// fromLevel takes over what package level says of a property: it owns the syntax.
func fromLevel(err error) *syntax.Error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return &syntax.Error{Part: e.Part, Problem: e.Problem, Allowed: e.Allowed}
	}
	return syntax.Refuse(err.Error(), "", allowedLimit)
}
