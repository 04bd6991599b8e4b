// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// treadmill is Treadmill's own rule, which knows no domains.
var treadmill = Rule{Lifetime: 21 * 24 * time.Hour, Least: 24 * time.Hour}

// moment reads a time of the vectors, in UTC.
func moment(t *testing.T, text string) time.Time {
	t.Helper()
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.UTC); err == nil {
			return at
		}
	}
	t.Fatalf("%q is no time", text)
	return time.Time{}
}

func schedule(t *testing.T, text string) Schedule {
	t.Helper()
	s, err := ParseSchedule(text, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// daily is the schedule of a partition that has none.
const daily = "mon,tue,wed,thu,fri,sat,sun"

// fresh are so many nodes that have begun at a time.
func fresh(n int, up time.Time) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{Name: fmt.Sprintf("s%02d", i), Up: up}
	}
	return nodes
}

// count is how many nodes end on each day, as DATE:N.
func count(ends []time.Time) string {
	n := make(map[string]int)
	for _, e := range ends {
		n[e.Format("01-02")]++
	}
	var all []string
	for day, nodes := range n {
		all = append(all, fmt.Sprint(day, ":", nodes))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Vector TV20: what a server costs in a bucket.
func TestVector_TV20(t *testing.T) {
	b := bucket{at: moment(t, "2000-01-03"), byDomain: make(map[string]int)}
	costs := func(up string) cost { return b.cost(&Node{Up: moment(t, up)}, &treadmill) }
	if got := costs("2000-01-01"); got != (cost{}) {
		t.Errorf("of an empty bucket: %+v", got)
	}
	b.add(&Node{})
	if got := costs("2000-01-01"); got != (cost{members: 1}) {
		t.Errorf("beside another one: %+v", got)
	}
	for why, up := range map[string]string{"it would run for too long": "1999-01-01", "not for a day": "2000-01-02 10:00"} {
		if got := costs(up); !got.outside {
			t.Errorf("%s: %+v", why, got)
		}
	}
}

// Vector TV21: which servers get which bucket.
func TestVector_TV21(t *testing.T) {
	now := moment(t, "2000-01-01")
	dates := schedule(t, daily).Dates(now, treadmill.Lifetime)
	if len(dates) != 22 {
		t.Fatalf("there are %d dates, want 22", len(dates))
	}
	nodes := []Node{
		{Name: "s1", Up: now, End: dates[0]},
		{Name: "s2", Up: now, End: moment(t, "2000-01-09 12:34:56")}, // no date of the schedule
		{Name: "s3", Up: now},
		{Name: "s4", Up: moment(t, "1999-12-24")},
	}
	ends := treadmill.Assign(dates, nodes)
	for i, want := range []string{"2000-01-01 23:59:59", "2000-01-21 23:59:59", "2000-01-20 23:59:59", "2000-01-13 23:59:59"} {
		if !ends[i].Equal(moment(t, want)) {
			t.Errorf("%s ends %v, want %s", nodes[i].Name, ends[i], want)
		}
	}
}

func TestVector_TV21_Pools(t *testing.T) {
	now := moment(t, "2018-01-01")
	for name, tc := range map[string]struct {
		schedule string
		nodes    int
		up       time.Time
		want     string
	}{
		"40 of the same age": {daily, 40, now, "01-02:2 01-03:2 01-04:2 01-05:2 01-06:2 01-07:2 01-08:2 01-09:2 01-10:2 01-11:2 01-12:2 01-13:2 01-14:2 " +
			"01-15:2 01-16:2 01-17:2 01-18:2 01-19:2 01-20:2 01-21:2"},
		"weekends":               {"sat,sun/10:30", 12, now, "01-06:2 01-07:2 01-13:2 01-14:2 01-20:2 01-21:2"},
		"one at the latest":      {"sat,sun/10:30", 1, now, "01-21:1"},
		"up for 30 days":         {"sat,sun/10:30", 3, now.AddDate(0, 0, -30), "01-06:3"},
		"no date is late enough": {daily, 1, now.AddDate(0, 0, 100), "01-22:1"},
		"two dates":              {"mon", 2, now, "01-15:1 01-08:1"},
	} {
		t.Run(name, func(t *testing.T) {
			dates := schedule(t, tc.schedule).Dates(now, treadmill.Lifetime)
			got := count(treadmill.Assign(dates, fresh(tc.nodes, tc.up)))
			want := slices.Sorted(slices.Values(strings.Fields(tc.want)))
			if got != strings.Join(want, " ") {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// Vector TV22: the dates of a schedule.
func TestVector_TV22(t *testing.T) {
	monday := moment(t, "2018-01-01")
	for text, want := range map[string][]string{
		"sat,sun":          {"2018-01-06 23:59:59", "2018-01-07 23:59:59"},
		"sat,sun/10:30:00": {"2018-01-06 23:59:59", "2018-01-07 10:30:00"},
		"SUN/10:30,sat":    {"2018-01-06 23:59:59", "2018-01-07 10:30:00"},
		"mon/00:00,tue":    {"2018-01-01 00:00:00", "2018-01-02 23:59:59"},
	} {
		dates := schedule(t, text).Dates(monday, 0)
		dates = append(dates, schedule(t, text).Dates(dates[len(dates)-1].Add(time.Second), 0)...)
		for i := range want {
			if i >= len(dates) || !dates[i].Equal(moment(t, want[i])) {
				t.Errorf("%s: the dates are %v, want %q first", text, dates, want)
				break
			}
		}
	}
}
