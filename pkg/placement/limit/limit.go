// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limit bounds the number of pods of one revision in one domain. A domain is
// the nodes that share a value of a node property. The package parses limits, and counts
// pods to enforce them.
//
// Limits of several properties hold at once, each by itself: their order means
// nothing. It is what SwarmKit calls max replicas per node, Treadmill affinity
// limits, and Nomad distinct_property.
package limit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

const (
	// MaxLimits bounds the limits of one pod.
	MaxLimits = level.MaxLevels
	// MaxPods bounds a limit. More is a slip of the keyboard: no domain runs as many.
	MaxPods = 1_000_000
)

// Limit is the most pods of one revision in one domain of a property.
type Limit struct {
	// Property is level.NodeName, which makes every node a domain of its own, or a label's key.
	Property level.Property
	// Pods is at least 1 and at most MaxPods.
	Pods int64
}

// String is the canonical text of a limit.
func (l Limit) String() string { return l.Property.String() + "=" + strconv.FormatInt(l.Pods, 10) }

// Format is the canonical text of limits, in their order: Parse(Format(x)) is x for
// any valid x that has limits. The text of no limits is empty.
func Format(limits []Limit) string {
	texts := make([]string, len(limits))
	for i, l := range limits {
		texts[i] = l.String()
	}
	return strings.Join(texts, syntax.Separator)
}

// Validate returns what is wrong with limits, nil if nothing is: a *syntax.Error. No
// limits at all are valid. Limits that Parse returns are valid; limits from elsewhere
// need the check.
func Validate(limits []Limit) error {
	if err := entries.TooMany(len(limits), Format(limits)); err != nil {
		return err
	}
	for i, l := range limits {
		err := l.check()
		if err == nil {
			err = checkNotNamed(limits[:i], l.Property)
		}
		if err != nil {
			return err.In(entries.Noun, i+1, l.String())
		}
	}
	return nil
}

func (l Limit) check() *syntax.Error {
	if !isPods(l.Pods) {
		return syntax.Refuse("invalid number of pods", strconv.FormatInt(l.Pods, 10), allowedPods)
	}
	// ParseProperty returns the same property or an error, so the result need not be
	// compared.
	if _, err := level.ParseProperty(l.Property.String()); err != nil {
		return fromLevel(err)
	}
	return nil
}

// checkNotNamed refuses a second limit over a property. Only the lower of the two
// could ever matter, so one of them is a mistake, most often two spellings of a label.
func checkNotNamed(limits []Limit, p level.Property) *syntax.Error {
	i := slices.IndexFunc(limits, func(l Limit) bool { return l.Property == p })
	if i < 0 {
		return nil
	}
	return syntax.Refuse("second limit over", p.String(), "limit "+strconv.Itoa(i+1)+" is over the same property; name each property once")
}

func isPods(n int64) bool { return 1 <= n && n <= MaxPods }
