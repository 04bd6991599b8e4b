// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level

import (
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

const (
	allowedShare  = "a share is a whole number from 1 to 1000000"
	allowedWeight = "a weight is for a label value (at most 63 letters, digits, '-', '_' or '.' with a letter or digit " +
		"at both ends), for nodes without the label (nothing after \"weight.\"), or for all other values (*)"
	allowedNodeWeight = "a weight at node.name is for a node's name, or for all other nodes (*)"
)

// Validate returns what is wrong with a level, nil if nothing is: a *syntax.Error.
// Levels that Parse returns are valid; levels from elsewhere need the check, and
// the algorithms rely on it.
func (l Level) Validate() error {
	if err := l.check(); err != nil {
		return err
	}
	return nil
}

// Validate returns what is wrong with levels, nil if nothing is: a *syntax.Error. No
// levels at all are valid: the nodes are then one leaf.
func Validate(levels []Level) error {
	if err := entries.TooMany(len(levels), Format(levels)); err != nil {
		return err
	}
	for i, l := range levels {
		err := l.check()
		if err == nil {
			err = checkDecides(levels[:i], l.Property)
		}
		if err != nil {
			return err.In(entries.Noun, i+1, l.String())
		}
	}
	return nil
}

// checkDecides refuses a level that could never decide anything, below those given. It
// is a mistake: a second level over a property, most often by another spelling, finds
// the same value on all nodes of a branch; and below node.name a branch is one node.
func checkDecides(above []Level, p Property) *syntax.Error {
	for i, l := range above {
		if l.Property == p {
			return syntax.Refuse("second level over", p.String(), "level "+strconv.Itoa(i+1)+" is over the same property; name each property once")
		}
		if l.Property == (Property{}) {
			return syntax.Refuse("level below "+NodeName+":", p.String(), "level "+strconv.Itoa(i+1)+" leaves one node in each domain; name "+NodeName+" last, or not at all")
		}
	}
	return nil
}

func (l Level) check() *syntax.Error {
	switch {
	case l.Strategy != Spread && l.Strategy != Pack:
		return syntax.Refuse("unknown strategy", string(l.Strategy), allowedLevel)
	case l.Property.Label != "" && !isLabelKey(l.Property.Label):
		return syntax.Refuse("invalid label key", l.Property.Label, allowedKey)
	case l.NodesWithoutKey != LastResort && l.NodesWithoutKey != OwnDomain && l.NodesWithoutKey != Exclude:
		return syntax.Refuse("unknown option value", withoutKeyOption+"="+string(l.NodesWithoutKey), allowedWithoutKey)
	case l.Share != "" && l.Share != Allocatable:
		return syntax.Refuse("unknown option value", shareOption+"="+string(l.Share), allowedShareOption)
	case l.Strategy == Pack && l.Share != "":
		return syntax.Refuse("share at a level that packs", shareOption+"="+string(l.Share), "only a level that spreads has shares")
	case len(l.Weights) > 0 && l.Share != "":
		return syntax.Refuse("weight beside share=Allocatable", l.Weights[0].String(), "use one of the two")
	case l.Strategy == Pack && len(l.Weights) > 0:
		return syntax.Refuse("weight at a level that packs", l.Weights[0].String(), "only a level that spreads has weights")
	case len(l.Weights) > MaxWeights:
		return syntax.Refuse(strconv.Itoa(len(l.Weights))+" weights over", l.Property.String(),
			"use at most "+strconv.Itoa(MaxWeights)+", and weight.*=SHARE for all other values")
	}
	for i, w := range l.Weights {
		if err := l.checkWeight(i, w); err != nil {
			return err
		}
	}
	return nil
}

func (l Level) checkWeight(i int, w Weight) *syntax.Error {
	ofNode := l.Property.Label == ""
	switch {
	case !ofNode && w.Value == "" && l.NodesWithoutKey != OwnDomain:
		return syntax.Refuse("weight for nodes without the label in", w.String(),
			"at a level with "+withoutKeyOption+"="+string(l.NodesWithoutKey)+" they have no share; remove it, or use "+withoutKeyOption+"="+string(OwnDomain))
	case ofNode && w.Value != Others && !isDomain(w.Value):
		return syntax.Refuse("invalid value in", w.String(), allowedNodeWeight)
	case !ofNode && w.Value != Others && !isLabelValue(w.Value):
		return syntax.Refuse("invalid value in", w.String(), allowedWeight)
	case !isShare(w.Share):
		return syntax.Refuse("invalid share in", w.String(), allowedShare)
	case i > 0 && w.Value == l.Weights[i-1].Value:
		return syntax.Refuse("second weight for the same value", w.String(), "give each value one weight")
	case i > 0 && w.Value < l.Weights[i-1].Value:
		return syntax.Refuse("weight out of order", w.String(), "weights are sorted by their values")
	}
	return nil
}

func isShare(share int64) bool { return 1 <= share && share <= MaxShare }

// String is the weight as an option of its level.
func (w Weight) String() string {
	return weightPrefix + w.Value + "=" + strconv.FormatInt(w.Share, 10)
}

// ShareOf is the share of a value. Where the value has a weight of its own, listed
// is true. Where it has not, the share is that of Others, which the value then
// divides with all unlisted ones (HasOthers), or 1.
func (l Level) ShareOf(value string) (share int64, listed bool) {
	if i, ok := l.find(value); ok {
		return l.Weights[i].Share, true
	}
	if i, ok := l.find(Others); ok {
		return l.Weights[i].Share, false
	}
	return 1, false
}

// HasOthers says that all values without a weight of their own make one virtual branch.
func (l Level) HasOthers() bool {
	_, ok := l.find(Others)
	return ok
}

func (l Level) find(value string) (int, bool) {
	return slices.BinarySearchFunc(l.Weights, value, func(w Weight, v string) int { return strings.Compare(w.Value, v) })
}
