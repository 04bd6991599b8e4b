// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
)

func TestFaultyNodeArgs(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*config.FaultyNodeArgs)
		want   [][]string
	}{
		"the defaults": {func(*config.FaultyNodeArgs) {}, nil},
		"the least of all": {func(a *config.FaultyNodeArgs) {
			a.Threshold, a.Window.Duration, a.ProvenAfter.Duration, a.OwnErrors = 1, time.Second, 0, config.OwnErrorsCount
			a.Suspects.Workloads = 2
		}, nil},
		"the most of all": {func(a *config.FaultyNodeArgs) {
			a.Threshold, a.Window.Duration, a.ProvenAfter.Duration = 1000, 24*time.Hour, time.Hour
			a.Suspects.Workloads = 1000
		}, nil},
		"without a record, no namespace": {func(a *config.FaultyNodeArgs) { a.Record = config.Record{} }, nil},
		"nothing": {func(a *config.FaultyNodeArgs) { *a = config.FaultyNodeArgs{Record: config.Record{Enabled: true}} }, [][]string{
			{"args.threshold", "0", "from 1 to 1000"}, {"args.window", `"0s"`, "from 1s to 24h"}, {"args.ownErrors", `"Count"`, `"Forgive"`},
			{"args.record.namespace", "lowercase"}, {"args.suspects.workloads", "0", "from 2 to 1000"},
		}},
		"too much": {func(a *config.FaultyNodeArgs) {
			a.Threshold, a.Window.Duration, a.ProvenAfter.Duration = 1001, 25*time.Hour, -time.Second
			a.Suspects.Workloads = 1001
		}, [][]string{
			{"args.threshold", "1001"}, {"args.window", `"25h0m0s"`, "to 24h"}, {"args.provenAfter", `"-1s"`, "from 0s to 1h"},
			{"args.suspects.workloads", "1001"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			args := &config.FaultyNodeArgs{
				Threshold: 5, Window: metav1.Duration{Duration: 5 * time.Minute}, HalfOpen: true,
				ProvenAfter: metav1.Duration{Duration: 10 * time.Second}, OwnErrors: config.OwnErrorsForgive,
				Record:   config.Record{Enabled: true, Namespace: "kube-system"},
				Suspects: config.Suspects{Workloads: 3},
			}
			tc.change(args)
			check(t, validation.FaultyNodeArgs(field.NewPath("args"), args), tc.want)
		})
	}
}
