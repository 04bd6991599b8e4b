// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// DomainLimitsArgs checks the arguments of the plugin DomainLimits.
func DomainLimitsArgs(path *field.Path, args *config.DomainLimitsArgs) field.ErrorList {
	_, errs := Limits(path.Child("defaultLimits"), args.DefaultLimits)
	return errs
}

// Limits turns the limits of an argument into those of the algorithms. Where there
// are errors there are no limits.
func Limits(path *field.Path, in []config.DomainLimit) ([]limit.Limit, field.ErrorList) {
	var errs field.ErrorList
	if len(in) > limit.MaxLimits {
		return nil, append(errs, field.TooMany(path, len(in), limit.MaxLimits))
	}
	var limits []limit.Limit
	for i, l := range in {
		at := path.Index(i)
		property, err := level.ParseKey(l.TopologyKey)
		if err != nil {
			errs = append(errs, field.Invalid(at.Child("topologyKey"), l.TopologyKey, err.Error()))
		}
		out := limit.Limit{Property: property, Pods: l.MaxPods}
		if err := limit.Validate([]limit.Limit{{Pods: l.MaxPods}}); err != nil {
			errs = append(errs, field.Invalid(at.Child("maxPods"), l.MaxPods, problem(err)))
		}
		limits = append(limits, out)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if err := limit.Validate(limits); err != nil {
		// Each limit by itself is right, so one of them repeats another.
		i := len(in) - 1
		if e, ok := errors.AsType[*syntax.Error](err); ok && e.Number > 0 {
			i = e.Number - 1
		}
		return nil, append(errs, field.Invalid(path.Index(i).Child("topologyKey"), in[i].TopologyKey, err.Error()))
	}
	return limits, nil
}

// problem leaves out which limit it is: the field's path says so.
func problem(err error) string {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return e.Allowed
	}
	return err.Error()
}
