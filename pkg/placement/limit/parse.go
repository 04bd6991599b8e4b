// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"strconv"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

const separator = ","

const (
	allowedLimit = "use PROPERTY=PODS, such as kubernetes.io/hostname=1"
	allowedPods  = "a limit is a whole number of pods from 1 to 1000000"
)

// Parse reads limits, as in
//
//	kubernetes.io/hostname=1,example.com/rack=2
//
// Each is a property, in any spelling of level.ParseProperty, and the most pods in
// one domain of it. White space around commas and "=" is dropped. The limits come
// back valid, in the order in which they are written, at least one of them. The
// error is a *SyntaxError that names the first thing that is wrong: a limit that was
// skipped would be a limit that is not kept.
func Parse(s string) ([]Limit, error) {
	if strings.TrimSpace(s) == "" {
		return nil, refuse("no limits in", s, allowedLimit)
	}
	if n := strings.Count(s, separator) + 1; n > MaxLimits {
		return nil, tooMany(n, s)
	}
	var limits []Limit
	for text := range strings.SplitSeq(s, separator) {
		text = strings.TrimSpace(text)
		l, err := parseLimit(text)
		if err == nil {
			err = checkNotNamed(limits, l.Property)
		}
		if err != nil {
			return nil, err.In(noun, len(limits)+1, text)
		}
		limits = append(limits, l)
	}
	return limits, nil
}

func parseLimit(text string) (Limit, *SyntaxError) {
	property, pods, ok := strings.Cut(text, "=")
	property, pods = strings.TrimSpace(property), strings.TrimSpace(pods)
	switch {
	case text == "":
		return Limit{}, refuse("empty limit", text, "remove the comma, or "+allowedLimit)
	case property == "":
		return Limit{}, refuse("no property before", "=", allowedLimit)
	case !ok || pods == "":
		return Limit{}, refuse("no number of pods after", property, allowedLimit)
	}
	p, err := level.ParseProperty(property)
	if err != nil {
		return Limit{}, fromLevel(err)
	}
	n, ok := parsePods(pods)
	if !ok {
		return Limit{}, refuse("invalid number of pods", pods, allowedPods)
	}
	return Limit{Property: p, Pods: n}, nil
}

// parsePods takes digits only: signs, exponents and other bases would be read in one
// place and not in the next.
func parsePods(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil && isPods(int64(n))
}
