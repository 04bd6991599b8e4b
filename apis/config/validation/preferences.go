// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation returns what is wrong with the plugins' arguments. Its
// functions are pure, take arguments that have been defaulted, and return every
// fault they find, each with the path of its field below the path given (nil for
// a path that starts at the arguments themselves).
//
// What makes a level valid is decided in pkg/placement/level, which reads the
// same levels from annotations; here its verdicts get their field paths.
package validation

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// strategies and nodesWithoutKey map what the arguments say to what the algorithms say.
// The words differ in case only, but a conversion by case would accept "sPREAD".
var (
	strategies = map[config.Strategy]level.Strategy{
		config.StrategySpread: level.Spread,
		config.StrategyPack:   level.Pack,
	}
	nodesWithoutKey = map[config.NodesWithoutKey]level.NodesWithoutKey{
		config.NodesWithoutKeyLastResort: level.LastResort,
		config.NodesWithoutKeyOwnDomain:  level.OwnDomain,
		config.NodesWithoutKeyExclude:    level.Exclude,
	}
)

// PreferencesArgs checks the arguments of the plugin Preferences.
func PreferencesArgs(path *field.Path, args *config.PreferencesArgs) field.ErrorList {
	_, errs := Levels(path.Child("defaultLevels"), args.DefaultLevels)
	return errs
}

// Levels turns the levels of an argument into those of the algorithms, in
// canonical form. Where there are errors there are no levels.
func Levels(path *field.Path, in []config.Level) ([]level.Level, field.ErrorList) {
	var errs field.ErrorList
	if len(in) > level.MaxLevels {
		return nil, append(errs, field.TooMany(path, len(in), level.MaxLevels))
	}
	levels := make([]level.Level, len(in))
	for i := range in {
		var bad field.ErrorList
		levels[i], bad = oneLevel(path.Index(i), &in[i])
		errs = append(errs, bad...)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if err := level.Validate(levels); err != nil {
		// Each level by itself is right, so one of them repeats another.
		return nil, append(errs, repeated(path, in, err))
	}
	return levels, nil
}

func oneLevel(path *field.Path, in *config.Level) (level.Level, field.ErrorList) {
	var errs field.ErrorList
	out := level.Level{Weights: weights(in), Share: level.Share(in.Share)}
	var ok bool
	if out.Strategy, ok = strategies[in.Strategy]; !ok {
		errs = append(errs, field.NotSupported(path.Child("strategy"), in.Strategy, slices.Sorted(maps.Keys(strategies))))
	}
	if out.NodesWithoutKey, ok = nodesWithoutKey[in.NodesWithoutKey]; !ok {
		errs = append(errs, field.NotSupported(path.Child("nodesWithoutKey"), in.NodesWithoutKey, slices.Sorted(maps.Keys(nodesWithoutKey))))
	}
	if in.Share != "" && in.Share != config.ShareAllocatable {
		errs = append(errs, field.NotSupported(path.Child("share"), in.Share, []config.Share{config.ShareAllocatable}))
	}
	var err error
	if out.Property, err = level.ParseKey(in.TopologyKey); err != nil {
		errs = append(errs, field.Invalid(path.Child("topologyKey"), in.TopologyKey, err.Error()))
	}
	if errs = append(errs, shares(path, in)...); len(errs) > 0 {
		return out, errs
	}
	if err := out.Validate(); err != nil {
		// Everything but the shares has been looked at above.
		errs = append(errs, field.Invalid(path.Child("shares"), part(err), err.Error()))
	}
	return out, errs
}

// maxShares bounds the values that a level lists: with those that are not listed, and nodes without the label, they are as
// many as there may be.
const maxShares = level.MaxWeights - 2

// shares checks what a list of shares is not for.
func shares(path *field.Path, in *config.Level) field.ErrorList {
	var errs field.ErrorList
	if len(in.Shares) > maxShares {
		errs = append(errs, field.TooMany(path.Child("shares"), len(in.Shares), maxShares))
	}
	for i, s := range in.Shares {
		if s.Value == "" || s.Value == level.Others {
			errs = append(errs, field.Invalid(path.Child("shares").Index(i).Child("value"), s.Value,
				"use the value of a label; unlistedShare is for all values that are not listed, nodesWithoutKeyShare for nodes without the label"))
		}
	}
	for _, s := range []struct {
		name  string
		share *int64
	}{{"unlistedShare", in.UnlistedShare}, {"nodesWithoutKeyShare", in.NodesWithoutKeyShare}} {
		if s.share != nil && (*s.share < 1 || *s.share > level.MaxShare) {
			errs = append(errs, field.Invalid(path.Child(s.name), *s.share, fmt.Sprintf("must be from 1 to %d", level.MaxShare)))
		}
	}
	return errs
}

// weights are the shares of a level as the algorithms have them.
func weights(in *config.Level) []level.Weight {
	var out []level.Weight
	for _, s := range in.Shares {
		out = append(out, level.Weight{Value: s.Value, Share: s.Share})
	}
	return level.Weights(out, in.UnlistedShare, in.NodesWithoutKeyShare)
}

func repeated(path *field.Path, in []config.Level, err error) *field.Error {
	if e, ok := errors.AsType[*syntax.Error](err); ok && 0 < e.Number && e.Number <= len(in) {
		i := e.Number - 1
		return field.Invalid(path.Index(i).Child("topologyKey"), in[i].TopologyKey, err.Error())
	}
	return field.Invalid(path, len(in), err.Error())
}

// part is the bad part alone: a whole list of shares would bury it.
func part(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return e.Part
	}
	return ""
}
