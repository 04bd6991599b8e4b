// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package versionwatch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/metrics/testutil"
)

func TestWatch(t *testing.T) {
	noAnswer := errors.New("connection refused")
	for name, c := range map[string]struct {
		emulated string
		answers  []any // versions, errors, or nil of an API server that says no version
		behind   float64
		ends     string
	}{
		"nothing changes":           {"1.36", []any{"1.36", "1.36"}, 0, ""},
		"an upgrade":                {"1.36", []any{"1.36", "1.37"}, 1, ""},
		"an upgrade beyond":         {"1.36", []any{"1.38"}, 1, ""},
		"newer than what is built":  {"1.37", []any{"1.38"}, 0, ""},
		"an upgrade and back":       {"1.35", []any{"1.37", "1.35"}, 0, ""},
		"a downgrade":               {"1.36", []any{"1.36", "1.35", noAnswer, "1.35"}, 0, "of Kubernetes 1.35 now"},
		"one of several is older":   {"1.36", []any{"1.35", "1.35"}, 0, "of Kubernetes 1.35 now"},
		"one answer from elsewhere": {"1.36", []any{"1.35", "1.36", "1.35"}, 0, ""},
		"no answer, no version":     {"1.36", []any{"1.37", noAnswer, nil}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			tick := make(chan time.Time, len(c.answers))
			for range c.answers {
				tick <- time.Time{}
			}
			err := watch(ctx, version.MajorMinor(1, 37), version.MustParseGeneric(c.emulated), tick, func() (*version.Version, error) {
				answer := c.answers[0]
				if c.answers = c.answers[1:]; len(c.answers) == 0 {
					cancel()
					for len(tick) > 0 {
						<-tick
					}
				}
				switch a := answer.(type) {
				case string:
					return version.MustParseGeneric(a), nil
				case error:
					return nil, a
				}
				return nil, nil //nolint:nilnil // it says no version
			})
			if got, _ := testutil.GetGaugeMetricValue(behind); got != c.behind {
				t.Errorf("%v minor versions behind, want %v", got, c.behind)
			}
			if (err == nil) != (c.ends == "") || err != nil && !strings.Contains(err.Error(), c.ends) {
				t.Errorf("got %v, want %q", err, c.ends)
			}
		})
	}
}
