// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestPoll(t *testing.T) {
	bad, over := errors.New("not yet"), errors.New("over")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	for name, tc := range map[string]struct {
		ctx     context.Context
		timeout time.Duration
		answers []error // the last is the answer from then on
		asked   int     // at least
		is      error
		says    string
	}{
		"at once":        {t.Context(), time.Minute, []error{nil}, 1, nil, ""},
		"in the end":     {t.Context(), time.Minute, []error{bad, bad, nil}, 3, nil, ""},
		"out of timeout": {t.Context(), time.Millisecond, []error{bad}, 2, bad, "waited 1ms for rain"},
		"never":          {t.Context(), time.Minute, []error{bad, Never(over)}, 2, over, "waiting for rain: over"},
		"terminated":     {ended, time.Minute, []error{bad}, 1, over, "waiting for rain: over; the last was: not yet"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			err := Poll(tc.ctx, tc.timeout, time.Millisecond, "rain", func() error {
				asked++
				return tc.answers[min(asked, len(tc.answers))-1]
			})
			if !errors.Is(err, tc.is) || asked < tc.asked || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("asked %d times: %v", asked, err)
			}
		})
	}
}
