// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
)

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
	switch args.ScaleDown {
	case config.ScaleDownEven, config.ScaleDownAny:
	default:
		errs = append(errs, field.NotSupported(path.Child("scaleDown"), args.ScaleDown,
			[]config.ScaleDown{config.ScaleDownAny, config.ScaleDownEven}))
	}
	switch args.DecisionRecord {
	case config.DecisionRecordEnabled, config.DecisionRecordDisabled:
	default:
		errs = append(errs, field.NotSupported(path.Child("decisionRecord"), args.DecisionRecord,
			[]config.DecisionRecord{config.DecisionRecordDisabled, config.DecisionRecordEnabled}))
	}
	return errs
}
