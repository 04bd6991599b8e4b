// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"testing"
	"time"
	_ "time/tzdata" // of machines that know no time zones

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestScheduleRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":            `no days in "": use mon to sun, with a time or without, such as sat,sun/10:30`,
		"saturday":    `day 1 "saturday": unknown day "saturday": use mon to sun, with a time or without, such as sat,sun/10:30`,
		"sat,sat/1:0": `day 2 "sat/1:0": the same day again: "sat": name each day once`,
		"sat/24:00":   `day 1 "sat/24:00": no time of a day "24:00": use HH:MM or HH:MM:SS`,
		"sat/":        `day 1 "sat/": no time of a day: use HH:MM or HH:MM:SS`,
		"sat,,sun":    `day 2 "": empty day: remove the comma, or use mon to sun, with a time or without, such as sat,sun/10:30`,
	} {
		if _, err := ParseSchedule(text, time.UTC); err == nil || err.Error() != want {
			t.Errorf("%q: got  %v\nwant %s", text, err, want)
		}
	}
	if dates := (Schedule{}).Dates(time.Unix(0, 0), time.Hour); dates != nil {
		t.Errorf("a schedule without a day has the dates %v", dates)
	}
}

// Where clocks are put forward, a time that a day does not have is near it; where they are put back, a day has each time once.
func TestScheduleWhereClocksChange(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSchedule("sat/02:30,sun/02:30,mon/02:30", berlin)
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range []int{28, 24} { // the last days of March and October 2026 on which clocks change are 29 and 25
		month := time.March
		if day == 24 {
			month = time.October
		}
		dates := s.Dates(time.Date(2026, month, day, 0, 0, 0, 0, berlin), 3*dayLong)[:3]
		for i, at := range dates {
			if at.Day() != day+i || at.Sub(time.Date(2026, month, day+i, 2, 30, 0, 0, berlin)).Abs() > time.Hour {
				t.Errorf("date %d is %v", i, at)
			}
		}
	}
}

func FuzzParseSchedule(f *testing.F) {
	f.Add("sat,sun/10:30:00")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text, time.UTC)
		if err != nil {
			placementtest.CheckRefusal(t, err, 1000)
			return
		}
		now := time.Unix(0, 0)
		last := now
		for i, at := range s.Dates(now, 30*dayLong) {
			if at.Before(now) || i > 0 && !at.After(last) {
				t.Errorf("%q has the date %v after %v", text, at, last)
			}
			last = at
		}
		if !last.After(now.Add(30 * dayLong)) {
			t.Errorf("%q ends %v", text, last)
		}
	})
}
