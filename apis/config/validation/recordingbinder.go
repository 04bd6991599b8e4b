// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
)

// mostCandidates bounds for how long one pod is bound again and again: each time waits for the API server.
const mostCandidates = 10

// RecordingBinderArgs checks the arguments of the plugin RecordingBinder.
func RecordingBinderArgs(path *field.Path, args *config.RecordingBinderArgs) field.ErrorList {
	var errs field.ErrorList
	if args.Candidates < 1 || args.Candidates > mostCandidates {
		errs = append(errs, field.Invalid(path.Child("candidates"), args.Candidates, fmt.Sprintf("must be from 1 to %d", mostCandidates)))
	}
	switch args.ScheduledEvents {
	case config.ScheduledEventsAll, config.ScheduledEventsSampled, config.ScheduledEventsOff:
	default:
		errs = append(errs, field.NotSupported(path.Child("scheduledEvents"), args.ScheduledEvents,
			[]config.ScheduledEvents{config.ScheduledEventsAll, config.ScheduledEventsOff, config.ScheduledEventsSampled}))
	}
	return errs
}
