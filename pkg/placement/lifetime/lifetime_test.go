// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// at is a second of the vectors, which count from 0.
func at(second int64) time.Time { return time.Unix(second, 0).UTC() }

// Vector TV18: a server that is valid until 200 takes an application with a lease of 50 at 100, and none at 190.
func TestVector_TV18(t *testing.T) {
	const lease = 50 * time.Second
	for _, tc := range []struct {
		now  int64
		want bool
	}{{100, true}, {149, true}, {150, false}, {190, false}, {200, false}, {300, false}} {
		if got := Outlives(at(200), at(tc.now), lease); got != tc.want {
			t.Errorf("at %d: %t, want %t", tc.now, got, tc.want)
		}
	}
	if !Outlives(at(200), at(300), 0) {
		t.Error("what has no lease goes anywhere")
	}
	if !Outlives(time.Time{}, at(300), math.MaxInt64) {
		t.Error("a node without an end lives for ever")
	}
	if Outlives(at(200), at(100), math.MaxInt64) {
		t.Error("the longest lease there is fits anywhere")
	}
}

// Vector TV19: a lease of 50 from 10 on, on server a that is valid until 1000, and from 250 on beside server b that is valid until 2000.
func TestVector_TV19(t *testing.T) {
	const lease = 50 * time.Second
	ends := map[string]time.Time{"a": at(1000)}
	on, expiry := "a", at(10).Add(lease)
	for _, tc := range []struct {
		now  int64
		want Renewal
		on   string
		till int64
	}{{200, Extended, "a", 250}, {975, Moved, "b", 1025}, {1975, Kept, "b", 1025}} {
		if tc.now > 250 {
			ends["b"] = at(2000)
		}
		now := at(tc.now)
		elsewhere := func() bool {
			for name, end := range ends {
				if name != on && Outlives(end, now, lease) {
					return true
				}
			}
			return false
		}
		got := Renew(ends[on], now, lease, elsewhere)
		switch got {
		case Moved:
			on, expiry = "b", now.Add(lease)
		case Extended:
			expiry = now.Add(lease)
		case Kept:
		}
		if got != tc.want || on != tc.on || !expiry.Equal(at(tc.till)) {
			t.Errorf("at %d: %d, on %s until %d, want %d, on %s until %d", tc.now, got, on, expiry.Unix(), tc.want, tc.on, tc.till)
		}
	}
}

func TestParseLease(t *testing.T) {
	for text, want := range map[string]time.Duration{"72h": 72 * time.Hour, "1h30m": 90 * time.Minute, "0s": 0, "0": 0} {
		if got, err := ParseLease(" " + text + " "); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"3d":                         `no duration "3d": use hours, minutes or seconds, such as 72h or 90m, and 0s for none`,
		"-1h":                        `negative duration "-1h": use hours, minutes or seconds, such as 72h or 90m, and 0s for none`,
		"":                           `no duration "": use hours`,
		"9999999999h":                `no duration "9999999999h"`, // more than fits
		strings.Repeat("9", 300_000): `no duration "9999`,
	} {
		if _, err := ParseLease(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestParseEnd(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-01-31T12:00:00Z":      time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
		"2026-01-31T12:00:00+01:00": time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC),
		"0001-01-01T00:00:00Z":      epoch, // and not the zero time, which is no end
	} {
		if got, err := ParseEnd(" " + text + " "); err != nil || !got.Equal(want) || got.IsZero() {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "tomorrow", "2026-01-31", "2026-02-31T12:00:00Z", "1738324800"} {
		if _, err := ParseEnd(text); err == nil || !strings.HasSuffix(err.Error(), ": write it as 2026-01-31T12:00:00Z") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestHour(t *testing.T) {
	for _, tc := range []struct {
		end  time.Time
		want int32
	}{
		{time.Time{}, 0},
		{epoch, FirstHour},
		{at(2*3600 + 1), 2},
		{at(3*3600 - 1), 2},
		{time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC), 70389527},
		{at(math.MaxInt64 / 2), math.MaxInt32},
	} {
		if got := Hour(tc.end); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.end, got, tc.want)
		}
	}
}

// A refusal is one printable line, whatever is quoted.
func FuzzParse(f *testing.F) {
	f.Add("72h")
	f.Add("2026-01-31T12:00:00Z")
	f.Fuzz(func(t *testing.T, text string) {
		if lease, err := ParseLease(text); err == nil && lease < 0 {
			t.Errorf("%q is a lease of %v", text, lease)
		} else if err != nil {
			placementtest.CheckRefusal(t, err, 1000)
		}
		if end, err := ParseEnd(text); err == nil && Hour(end) < FirstHour {
			t.Errorf("%q is no end", text)
		}
	})
}
