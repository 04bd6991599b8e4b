// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stagger gives the nodes of a pool ends that are not all at once: on the days and at the times at which nodes may be taken out of
// service, about as many nodes on each, and no more of one domain than may be missing together.
//
// It answers the seed on Treadmill's scheduler, "Application lifetime constraints and reboot awareness": the reboot buckets. That a domain
// is not to end at once is a deliberate step beyond it, which only counts the nodes of a bucket.
package stagger

import (
	"strings"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// Schedule is at which time of which days of the week nodes may end. The zero Schedule has no day.
type Schedule struct {
	// second is that of the day plus one, by time.Weekday, and 0 for a day on which no node ends.
	second [7]int
	zone   *time.Location
}

// days are the words of a schedule, by time.Weekday.
var days = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// lastSecond is the time of a day that is given none: 23:59:59.
const lastSecond = 24*60*60 - 1

// entries is how a schedule is written.
var entries = syntax.Entries{Noun: "day", Max: len(days), Allowed: "use mon to sun, with a time or without, such as sat,sun/10:30"}

// day is one entry of a schedule.
type day struct {
	of     time.Weekday
	second int
}

// ParseSchedule reads a schedule as DAY,DAY/HH:MM or DAY/HH:MM:SS: sat,sun/10:30:00 is every Saturday at 23:59:59 and every Sunday at
// 10:30:00 (TV22). Times are those of a time zone.
func ParseSchedule(text string, zone *time.Location) (Schedule, error) {
	all, err := syntax.ParseList(text, entries, parseDay)
	if err != nil {
		return Schedule{}, err
	}
	s := Schedule{zone: zone}
	for _, d := range all {
		s.second[d.of] = d.second + 1
	}
	return s, nil
}

func parseDay(before []day, text string) (day, *syntax.Error) {
	name, clock, timed := strings.Cut(text, "/")
	d := day{of: -1, second: lastSecond}
	for of, word := range days {
		if syntax.SameWord(name, word) {
			d.of = time.Weekday(of)
		}
	}
	if d.of < 0 {
		return d, syntax.Refuse("unknown day", name, entries.Allowed)
	}
	for _, b := range before {
		if b.of == d.of {
			return d, syntax.Refuse("the same day again:", name, "name each day once")
		}
	}
	if !timed {
		return d, nil
	}
	at, err := time.Parse(time.TimeOnly, clock)
	if err != nil {
		at, err = time.Parse("15:04", clock)
	}
	if err != nil {
		return d, syntax.Refuse("no time of a day", clock, "use HH:MM or HH:MM:SS")
	}
	d.second = at.Hour()*60*60 + at.Minute()*60 + at.Second()
	return d, nil
}

// Dates returns the times at which nodes may end, in order: those from now on, until the first that is later than a whole lifetime from
// now (TV21). A node that begins now has all its dates among them.
func (s Schedule) Dates(now time.Time, lifetime time.Duration) []time.Time {
	if s.second == [7]int{} {
		return nil
	}
	var dates []time.Time
	for today, after := now.In(s.zone), 0; ; after++ {
		noon := time.Date(today.Year(), today.Month(), today.Day()+after, 12, 0, 0, 0, s.zone)
		second := s.second[noon.Weekday()] - 1
		if second < 0 {
			continue
		}
		// Where clocks are changed there are days without some of the times. Go takes a moment beside them.
		at := time.Date(noon.Year(), noon.Month(), noon.Day(), 0, 0, second, 0, s.zone)
		if at.Before(now) {
			continue
		}
		if dates = append(dates, at); at.After(now.Add(lifetime)) {
			return dates
		}
	}
}
