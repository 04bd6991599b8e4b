// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/pkg/placement/sampling"
)

// maxSamplingTimeout is the longest time for one sample, in milliseconds.
const maxSamplingTimeout = 10000

// NodeSamplingArgs checks the arguments of the plugin NodeSampling.
func NodeSamplingArgs(path *field.Path, args *config.NodeSamplingArgs) field.ErrorList {
	errs := metav1validation.ValidateLabelName(args.TopologyKey, path.Child("topologyKey"))
	errs = append(errs, basisPoints(path.Child("groupsBasisPoints"), args.GroupsBasisPoints)...)
	errs = append(errs, basisPoints(path.Child("nodesBasisPoints"), args.NodesBasisPoints)...)
	if args.Strategy != config.SamplingRandom && args.Strategy != config.SamplingRoundRobin {
		errs = append(errs, field.NotSupported(path.Child("strategy"), args.Strategy, []config.SamplingStrategy{config.SamplingRandom, config.SamplingRoundRobin}))
	}
	if args.TimeoutMilliseconds < 1 || args.TimeoutMilliseconds > maxSamplingTimeout {
		errs = append(errs, field.Invalid(path.Child("timeoutMilliseconds"), args.TimeoutMilliseconds, "must be from 1 to 10000 milliseconds"))
	}
	return errs
}

func basisPoints(path *field.Path, share int32) field.ErrorList {
	if sampling.BasisPoints(share).Valid() {
		return nil
	}
	return field.ErrorList{field.Invalid(path, share, "must be from 1 to 10000: hundredths of a percent")}
}
