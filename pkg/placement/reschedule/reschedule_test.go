// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reschedule

import (
	"slices"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// after are events of delays in seconds, the last one some time ago and each before it a minute earlier.
func after(last time.Duration, seconds ...int) []Event {
	var events []Event
	for i, s := range seconds {
		events = append(events, Event{now.Add(-last - time.Duration(len(seconds)-1-i)*time.Minute), time.Duration(s) * time.Second})
	}
	return events
}

func policy(f Function, most time.Duration) Policy {
	return Policy{Delay: 5 * time.Second, Function: f, MaxDelay: most, Unlimited: true}
}

// Vector NV18: what is waited.
func TestVector_NV18_Delay(t *testing.T) {
	const long = time.Hour
	for name, tc := range map[string]struct {
		p      Policy
		events []Event
		failed time.Duration // ago
		want   time.Duration // after the failure
	}{
		"constant":                      {policy(Constant, 0), nil, 2 * time.Second, 5 * time.Second},
		"constant again":                {policy(Constant, 0), after(time.Minute, 5, 5), 2 * time.Second, 5 * time.Second},
		"exponential":                   {policy(Exponential, 90*time.Second), after(time.Minute, 5, 10, 20), 0, 40 * time.Second},
		"exponential at its bound":      {policy(Exponential, 90*time.Second), after(40*time.Second, 5, 10, 20, 40, 80), 15 * time.Second, 90 * time.Second},
		"exponential, stable since":     {policy(Exponential, 90*time.Second), after(long, 5, 10, 20, 40, 80, 90), 15 * time.Minute, 5 * time.Second},
		"Fibonacci":                     {policy(Fibonacci, 50*time.Second), after(time.Minute, 5, 5), 0, 10 * time.Second},
		"Fibonacci of more":             {policy(Fibonacci, 50*time.Second), after(time.Minute, 5, 5, 10, 15, 25), 0, 40 * time.Second},
		"Fibonacci at its bound":        {policy(Fibonacci, 50*time.Second), after(40*time.Second, 5, 5, 10, 15, 25, 40), 15 * time.Second, 50 * time.Second},
		"Fibonacci, stable since":       {policy(Fibonacci, 50*time.Second), after(long, 5, 5, 10, 15, 25, 40, 50), 15 * time.Minute, 5 * time.Second},
		"Fibonacci after it was reset":  {policy(Fibonacci, 50*time.Second), after(40*time.Second, 25, 40, 50, 5), 15 * time.Second, 5 * time.Second},
		"Fibonacci for the second time": {policy(Fibonacci, 50*time.Second), after(time.Minute, 5), 0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			failed := now.Add(-tc.failed)
			if at, ok := tc.p.Next(tc.events, failed); !ok || at.Sub(failed) != tc.want {
				t.Errorf("it waits %s, %t, want %s", at.Sub(failed), ok, tc.want)
			}
		})
	}
}

// Vector NV18: how often.
func TestVector_NV18_Eligible(t *testing.T) {
	limited := func(attempts int, interval time.Duration) Policy {
		return Policy{Delay: 5 * time.Second, Attempts: attempts, Interval: interval}
	}
	ago := func(minutes ...int) (events []Event) {
		for _, m := range minutes {
			events = append(events, Event{now.Add(-time.Duration(m) * time.Minute), 5 * time.Second})
		}
		return events
	}
	for name, tc := range map[string]struct {
		p      Policy
		events []Event
		want   bool
	}{
		"one of two in ten minutes": {limited(2, 10*time.Minute), ago(2), true},
		"two of two":                {limited(2, 10*time.Minute), ago(3, 2), false},
		"two of two in five":        {limited(2, 5*time.Minute), ago(4, 3), false},
		"one of two in five":        {limited(2, 5*time.Minute), ago(1), true},
		"one that is long ago":      {limited(1, 5*time.Minute), ago(6), true},
		"none yet":                  {limited(1, 5*time.Minute), nil, true},
		"a delay like the interval": {Policy{Delay: 5 * time.Minute, Attempts: 2, Interval: 5 * time.Minute}, ago(1), false},
		"unlimited":                 {policy(Constant, 0), ago(3, 2, 1, 0), true},
		"no policy":                 {Policy{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := tc.p.Next(tc.events, now); ok != tc.want {
				t.Errorf("got %t", ok)
			}
		})
	}
}

// Vector NV18: what is kept.
func TestVector_NV18_Track(t *testing.T) {
	delays := func(events []Event) (seconds []int) {
		for _, e := range events {
			seconds = append(seconds, int(e.Delay.Seconds()))
		}
		return seconds
	}
	unlimited := policy(Fibonacci, 0).Track(after(time.Minute, 5, 5, 10, 15, 25, 40, 65, 105), now)
	if got, want := delays(unlimited), []int{15, 25, 40, 65, 105, 170}; !slices.Equal(got, want) {
		t.Errorf("an unlimited policy keeps %v, want %v", got, want)
	}
	limited := Policy{Delay: 5 * time.Second, Function: Exponential, Attempts: 5, Interval: time.Hour}
	events := []Event{
		{now.Add(-2 * time.Hour), 5 * time.Second},
		{now.Add(-70 * time.Minute), 10 * time.Second},
		{now.Add(-30 * time.Minute), 20 * time.Second},
		{now.Add(-10 * time.Minute), 40 * time.Second},
	}
	if got, want := delays(limited.Track(events, now)), []int{20, 40, 80}; !slices.Equal(got, want) {
		t.Errorf("a limited policy keeps %v, want %v", got, want)
	}
	if len(events) != 4 || events[3].Delay != 40*time.Second {
		t.Errorf("the events were changed: %v", events)
	}
}
