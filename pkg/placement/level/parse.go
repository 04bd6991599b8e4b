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
	levelSeparator  = ","
	optionSeparator = ";"
	weightPrefix    = "weight."
	missingOption   = "missing"
)

const (
	allowedLevel   = "use spread=PROPERTY or pack=PROPERTY"
	allowedOption  = "use weight.VALUE=SHARE, weight.*=SHARE, missing=Include or missing=Exclude"
	allowedMissing = "use missing=Include or missing=Exclude"
)

// Parse reads levels, first level first, as in
//
//	spread=topology.kubernetes.io/zone;weight.zone-a=70;weight.*=30,pack=example.com/rack;missing=Exclude
//
// Levels are separated by commas, a level's options follow it after semicolons.
// White space around separators and "=" is dropped. The words spread, pack,
// weight, missing, Include and Exclude are read in any case. The levels come back
// valid and in canonical form, at least one of them. The error is a *SyntaxError
// that names the first thing that is wrong: nothing is skipped.
func Parse(s string) ([]Level, error) {
	if strings.TrimSpace(s) == "" {
		return nil, refuse("no levels in", s, allowedLevel)
	}
	if n := strings.Count(s, levelSeparator) + 1; n > MaxLevels {
		return nil, refuse(strconv.Itoa(n)+" levels in", s, "use at most "+strconv.Itoa(MaxLevels))
	}
	var levels []Level
	for text := range strings.SplitSeq(s, levelSeparator) {
		text = strings.TrimSpace(text)
		l, err := parseLevel(text)
		if err == nil {
			err = checkDecides(levels, l.Property)
		}
		if err != nil {
			return nil, err.In(noun, len(levels)+1, text)
		}
		levels = append(levels, l)
	}
	return levels, nil
}

func parseLevel(text string) (Level, *SyntaxError) {
	if text == "" {
		return Level{}, refuse("empty level", text, "remove the comma, or "+allowedLevel)
	}
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
	return l, l.check()
}

func parseHead(head string) (Level, *SyntaxError) {
	word, property, ok := strings.Cut(head, "=")
	word, property = strings.TrimSpace(word), strings.TrimSpace(property)
	l := Level{Strategy: parseStrategy(word), Missing: Include}
	switch {
	case !ok && l.Strategy == "":
		return Level{}, refuse("no strategy before", head, allowedLevel)
	case l.Strategy == "":
		return Level{}, refuse("unknown strategy", word, allowedLevel)
	case property == "":
		return Level{}, refuse("no property after", word, allowedLevel)
	}
	var err *SyntaxError
	l.Property, err = parseProperty(property)
	return l, err
}

func parseOptions(l *Level, options string) *SyntaxError {
	missingSeen := false
	for option := range strings.SplitSeq(options, optionSeparator) {
		option = strings.TrimSpace(option)
		if option == "" {
			return refuse("empty option", option, "remove the semicolon, or "+allowedOption)
		}
		name, text, ok := strings.Cut(option, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		value, isWeight := syntax.CutPrefixFold(name, weightPrefix)
		switch {
		case !isWeight && !syntax.SameWord(name, missingOption):
			return refuse("unknown option", name, allowedOption)
		case !ok:
			return refuse("no value in option", option, allowedOption)
		case isWeight:
			share, err := parseShare(option, text)
			if err != nil {
				return err
			}
			l.Weights = append(l.Weights, Weight{Value: value, Share: share})
		case missingSeen:
			return refuse("second option", option, "give missing once")
		default:
			missingSeen = true
			if l.Missing, ok = parseMissing(text); !ok {
				return refuse("unknown option value", option, allowedMissing)
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

func parseMissing(s string) (Missing, bool) {
	for _, m := range []Missing{Include, Exclude} {
		if syntax.SameWord(s, string(m)) {
			return m, true
		}
	}
	return "", false
}

// parseShare takes digits only: signs, exponents and other bases would be read
// in one place and not in the next.
func parseShare(option, s string) (int64, *SyntaxError) {
	share, err := strconv.ParseUint(s, 10, 63)
	if err != nil || !isShare(int64(share)) {
		return 0, refuse("invalid share in", option, allowedShare)
	}
	return int64(share), nil
}
