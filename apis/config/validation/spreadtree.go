// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
)

// maxBatchDelay bounds how long a pod may be held back. A slip of the unit
// (1h for 1s) would otherwise look like a scheduler that hangs.
const maxBatchDelay = 10 * time.Minute

// SpreadTreeArgs checks the arguments of the plugin SpreadTree.
func SpreadTreeArgs(path *field.Path, args *config.SpreadTreeArgs) field.ErrorList {
	var errs field.ErrorList
	switch args.CountRevisions {
	case config.CountNewest, config.CountAll:
	default:
		errs = append(errs, field.NotSupported(path.Child("countRevisions"), args.CountRevisions,
			[]config.CountRevisions{config.CountAll, config.CountNewest}))
	}
	switch args.NodeHint {
	case config.NodeHintEnabled, config.NodeHintDisabled:
	default:
		errs = append(errs, field.NotSupported(path.Child("nodeHint"), args.NodeHint,
			[]config.NodeHint{config.NodeHintDisabled, config.NodeHintEnabled}))
	}
	return append(errs, batch(path.Child("batch"), &args.Batch)...)
}

func batch(path *field.Path, in *config.Batch) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, delay(path.Child("window"), in.Window)...)
	errs = append(errs, delay(path.Child("maxDelay"), in.MaxDelay)...)
	if len(errs) == 0 && in.MaxDelay.Duration < in.Window.Duration {
		errs = append(errs, field.Invalid(path.Child("maxDelay"), in.MaxDelay.Duration.String(),
			"must not be less than window, which is "+in.Window.Duration.String()))
	}
	return errs
}

func delay(path *field.Path, in metav1.Duration) field.ErrorList {
	if in.Duration < 0 || in.Duration > maxBatchDelay {
		return field.ErrorList{field.Invalid(path, in.Duration.String(),
			"must be from 0s to "+maxBatchDelay.String())}
	}
	return nil
}
