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
	optionSeparator  = ";"
	weightPrefix     = "weight."
	shareOption      = "share"
	withoutKeyOption = "nodesWithoutKey"
)

const (
	allowedLevel       = "use spread=PROPERTY or pack=PROPERTY"
	allowedOption      = "use weight.VALUE=SHARE, weight.*=SHARE, share=Allocatable or nodesWithoutKey=LastResort, OwnDomain or Exclude"
	allowedShareOption = "use share=Allocatable"
	allowedWithoutKey  = "use nodesWithoutKey=LastResort, nodesWithoutKey=OwnDomain or nodesWithoutKey=Exclude"
)

var entries = syntax.Entries{Noun: "level", Max: MaxLevels, Allowed: allowedLevel}

// Parse reads levels, first level first, as in
//
//	spread=topology.kubernetes.io/zone;weight.zone-a=70;weight.*=30,pack=example.com/rack;nodesWithoutKey=Exclude
//
// Levels are separated by commas, a level's options follow it after semicolons.
// White space around separators and "=" is dropped. The words spread, pack,
// weight, share, nodesWithoutKey and their values are read in any case. The levels come back
// valid and in canonical form, at least one of them. The error is a *syntax.Error
// that names the first thing that is wrong: nothing is skipped.
func Parse(s string) ([]Level, error) {
	return syntax.ParseList(s, entries, parseLevel)
}

func parseLevel(above []Level, text string) (Level, *syntax.Error) {
	head, options, hasOptions := strings.Cut(text, optionSeparator)
	l, err := parseHead(strings.TrimSpace(head))
	if err != nil {
		return Level{}, err
	}
	if hasOptions {
		if err := parseOptions(&l, options); err != nil {
			return Level{}, err
		}
	}
	if err := l.check(); err != nil {
		return Level{}, err
	}
	return l, checkDecides(above, l.Property)
}

func parseHead(head string) (Level, *syntax.Error) {
	word, property, ok := strings.Cut(head, "=")
	word, property = strings.TrimSpace(word), strings.TrimSpace(property)
	l := Level{Strategy: parseStrategy(word), NodesWithoutKey: OwnDomain}
	switch {
	case !ok && l.Strategy == "":
		return Level{}, syntax.Refuse("no strategy before", head, allowedLevel)
	case l.Strategy == "":
		return Level{}, syntax.Refuse("unknown strategy", word, allowedLevel)
	case property == "":
		return Level{}, syntax.Refuse("no property after", word, allowedLevel)
	}
	var err *syntax.Error
	l.Property, err = parseProperty(property)
	return l, err
}

func parseOptions(l *Level, options string) *syntax.Error {
	withoutKeySeen, shareSeen := false, false
	for option := range strings.SplitSeq(options, optionSeparator) {
		option = strings.TrimSpace(option)
		if option == "" {
			return syntax.Refuse("empty option", option, "remove the semicolon, or "+allowedOption)
		}
		name, text, ok := strings.Cut(option, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		value, isWeight := syntax.CutPrefixFold(name, weightPrefix)
		switch {
		case !isWeight && !syntax.SameWord(name, withoutKeyOption) && !syntax.SameWord(name, shareOption):
			return syntax.Refuse("unknown option", name, allowedOption)
		case !ok:
			return syntax.Refuse("no value in option", option, allowedOption)
		case isWeight:
			share, err := parseShare(option, text)
			if err != nil {
				return err
			}
			l.Weights = append(l.Weights, Weight{Value: value, Share: share})
		case syntax.SameWord(name, shareOption) && shareSeen:
			return syntax.Refuse("second option", option, "give share once")
		case syntax.SameWord(name, shareOption):
			shareSeen = true
			if !syntax.SameWord(text, string(Allocatable)) {
				return syntax.Refuse("unknown option value", option, allowedShareOption)
			}
			l.Share = Allocatable
		case withoutKeySeen:
			return syntax.Refuse("second option", option, "give nodesWithoutKey once")
		default:
			withoutKeySeen = true
			if l.NodesWithoutKey, ok = parseNodesWithoutKey(text); !ok {
				return syntax.Refuse("unknown option value", option, allowedWithoutKey)
			}
		}
	}
	slices.SortStableFunc(l.Weights, func(a, b Weight) int { return strings.Compare(a.Value, b.Value) })
	return nil
}

// parseStrategy returns "" for a word that is none.
func parseStrategy(word string) Strategy {
	for _, s := range []Strategy{Spread, Pack} {
		if syntax.SameWord(word, string(s)) {
			return s
		}
	}
	return ""
}

func parseNodesWithoutKey(s string) (NodesWithoutKey, bool) {
	for _, m := range []NodesWithoutKey{LastResort, OwnDomain, Exclude} {
		if syntax.SameWord(s, string(m)) {
			return m, true
		}
	}
	return "", false
}

// parseShare takes digits only: signs, exponents and other bases would be read
// in one place and not in the next.
func parseShare(option, s string) (int64, *syntax.Error) {
	share, err := strconv.ParseUint(s, 10, 63)
	if err != nil || !isShare(int64(share)) {
		return 0, syntax.Refuse("invalid share in", option, allowedShare)
	}
	return int64(share), nil
}
