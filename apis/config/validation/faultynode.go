// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

const (
	// maxProof bounds how long a node has to be on trial: a slip of the unit would
	// keep every node there that ever failed.
	maxProof = time.Hour
	// most bounds numbers of failures, workloads and nodes.
	most = 1000
)

// FaultyNodeArgs checks the arguments of the plugin FaultyNode.
func FaultyNodeArgs(path *field.Path, args *config.FaultyNodeArgs) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, number(path.Child("threshold"), args.Threshold, 1)...)
	errs = append(errs, seconds(path.Child("windowSeconds"), args.WindowSeconds, failure.MinWindow, failure.MaxWindow)...)
	errs = append(errs, seconds(path.Child("provenAfterSeconds"), args.ProvenAfterSeconds, 0, maxProof)...)
	switch args.OwnErrors {
	case config.OwnErrorsForgive, config.OwnErrorsCount:
	default:
		errs = append(errs, field.NotSupported(path.Child("ownErrors"), args.OwnErrors,
			[]config.OwnErrors{config.OwnErrorsCount, config.OwnErrorsForgive}))
	}
	if args.Record.Enabled {
		for _, message := range apivalidation.IsDNS1123Label(args.Record.Namespace) {
			errs = append(errs, field.Invalid(path.Child("record", "namespace"), args.Record.Namespace, message))
		}
	}
	// One workload that fails on a node is no reason to suspect the node.
	return append(errs, number(path.Child("suspects", "workloads"), args.Suspects.Workloads, 2)...)
}

func number(path *field.Path, in, least int32) field.ErrorList {
	if in < least || in > most {
		return field.ErrorList{field.Invalid(path, in, fmt.Sprintf("must be from %d to %d", least, most))}
	}
	return nil
}

func seconds(path *field.Path, in int32, least, longest time.Duration) field.ErrorList {
	if d := time.Duration(in) * time.Second; d < least || d > longest {
		return field.ErrorList{field.Invalid(path, in, fmt.Sprintf("must be from %d to %d", int(least.Seconds()), int(longest.Seconds())))}
	}
	return nil
}
