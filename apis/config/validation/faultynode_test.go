// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

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
			a.Threshold, a.WindowSeconds, a.ProvenAfterSeconds, a.OwnErrors = 1, 1, 0, config.OwnErrorsCount
			a.Suspects.Workloads = 2
		}, nil},
		"the most of all": {func(a *config.FaultyNodeArgs) {
			a.Threshold, a.WindowSeconds, a.ProvenAfterSeconds = 1000, 24*3600, 3600
			a.Suspects.Workloads = 1000
		}, nil},
		"without a record, no namespace": {func(a *config.FaultyNodeArgs) { a.Record = config.Record{} }, nil},
		"nothing": {func(a *config.FaultyNodeArgs) { *a = config.FaultyNodeArgs{Record: config.Record{Enabled: true}} }, [][]string{
			{"args.threshold", "0", "from 1 to 1000"}, {"args.windowSeconds", "0", "from 1 to 86400"}, {"args.ownErrors", `"Count"`, `"Forgive"`},
			{"args.record.namespace", "lowercase"}, {"args.suspects.workloads", "0", "from 2 to 1000"},
		}},
		"too much": {func(a *config.FaultyNodeArgs) {
			a.Threshold, a.WindowSeconds, a.ProvenAfterSeconds = 1001, 24*3600+1, -1
			a.Suspects.Workloads = 1001
		}, [][]string{
			{"args.threshold", "1001"}, {"args.windowSeconds", "86401", "to 86400"}, {"args.provenAfterSeconds", "-1", "from 0 to 3600"},
			{"args.suspects.workloads", "1001"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			args := &config.FaultyNodeArgs{
				Threshold: 5, WindowSeconds: 300, HalfOpen: true,
				ProvenAfterSeconds: 10, OwnErrors: config.OwnErrorsForgive,
				Record:   config.Record{Enabled: true, Namespace: "kube-system"},
				Suspects: config.Suspects{Workloads: 3},
			}
			tc.change(args)
			check(t, validation.FaultyNodeArgs(field.NewPath("args"), args), tc.want)
		})
	}
}
