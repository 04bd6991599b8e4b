// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // of machines that know no time zones

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "500"})
	os.Exit(m.Run())
}

const dayLong = 24 * time.Hour

// pool is nodes of a few domains under a schedule.
type pool struct {
	rule  Rule
	now   time.Time
	dates []time.Time
	nodes []Node
}

func drawPool(t *rapid.T) *pool {
	p := &pool{now: time.Date(2026, 1, 5, rapid.IntRange(0, 23).Draw(t, "hour"), 0, 0, 0, time.UTC)}
	p.rule = Rule{
		Lifetime: time.Duration(rapid.IntRange(1, 30).Draw(t, "lifetime")) * dayLong,
		Least:    time.Duration(rapid.IntRange(0, 2).Draw(t, "least")) * dayLong, PerDomain: rapid.IntRange(0, 3).Draw(t, "per domain"),
	}
	s, err := ParseSchedule(rapid.SampledFrom([]string{daily, "sat,sun/10:30", "wed/02:00"}).Draw(t, "schedule"), time.UTC)
	placementtest.Must(t, err)
	p.dates = s.Dates(p.now, p.rule.Lifetime)
	for i := range rapid.IntRange(0, 60).Draw(t, "nodes") {
		n := Node{Name: fmt.Sprintf("n%02d", i), Domain: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "domain")}
		n.Up = p.now.Add(-time.Duration(rapid.IntRange(-24, 40*24).Draw(t, "hours up")) * time.Hour)
		if rapid.IntRange(0, 4).Draw(t, "has an end") == 0 {
			n.End = rapid.SampledFrom(p.dates).Draw(t, "end")
		}
		if rapid.IntRange(0, 4).Draw(t, "ends anyhow") == 0 {
			n.Latest = n.Up.Add(time.Duration(rapid.IntRange(0, 40*24).Draw(t, "after")) * time.Hour)
		}
		p.nodes = append(p.nodes, n)
	}
	return p
}

// What was given is kept, whoever asks again, in whatever order the nodes are listed.
func TestPropertyEndsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		ends := make(map[string]time.Time)
		for i, end := range p.rule.Assign(p.dates, p.nodes) {
			if !slices.ContainsFunc(p.dates, end.Equal) {
				t.Fatalf("%s ends %v, which is none of the dates", p.nodes[i].Name, end)
			}
			ends[p.nodes[i].Name] = end
		}
		again := rapid.Permutation(p.nodes).Draw(t, "listed")
		for i, end := range p.rule.Assign(p.dates, again) {
			if !end.Equal(ends[again[i].Name]) {
				t.Fatalf("listed otherwise, %s ends %v and not %v", again[i].Name, end, ends[again[i].Name])
			}
		}
		for i := range again {
			again[i].End = ends[again[i].Name]
		}
		for i, end := range p.rule.Assign(p.dates, again) {
			if !end.Equal(again[i].End) {
				t.Fatalf("asked again, %s ends %v and not %v", again[i].Name, end, again[i].End)
			}
		}
	})
}

// A node ends in its time if a date is, and of its domain no more end with it than may, if there is a date with room.
func TestPropertyEndsAreInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		ends := p.rule.Assign(p.dates, p.nodes)
		inTime := func(n *Node, at time.Time) bool {
			return !at.After(n.latest(&p.rule)) && !at.Before(n.Up.Add(p.rule.Least))
		}
		index := func(of Node) int { return slices.IndexFunc(p.nodes, func(n Node) bool { return n.Name == of.Name }) }
		together := func(domain string, at time.Time) (n int) {
			for i := range p.nodes {
				if p.nodes[i].Domain == domain && ends[i].Equal(at) {
					n++
				}
			}
			return n
		}
		for i := range p.nodes {
			n := &p.nodes[i]
			if !n.End.IsZero() {
				continue // it was given before
			}
			usable := slices.DeleteFunc(slices.Clone(p.dates), func(at time.Time) bool { return !inTime(n, at) })
			if len(usable) > 0 && !inTime(n, ends[i]) {
				t.Fatalf("%s runs since %v and ends %v, though %v would be in time", n.Name, n.Up, ends[i], usable)
			}
			isLast := !slices.ContainsFunc(p.nodes[i+1:], func(o Node) bool { return o.End.IsZero() && o.Domain == n.Domain && ends[index(o)].Equal(ends[i]) })
			if len(usable) == 0 || p.rule.PerDomain == 0 || !isLast || together(n.Domain, ends[i]) <= p.rule.PerDomain {
				continue // those before it had a place, and it may have had no other
			}
			for _, at := range usable {
				if got := together(n.Domain, at); got < p.rule.PerDomain {
					t.Fatalf("%d of domain %s end %v, and %d at %v", together(n.Domain, ends[i]), n.Domain, ends[i], got, at)
				}
			}
		}
	})
}

// Nodes that have begun together are shared out evenly over the dates, also where only so many of a domain may end at once: none has to
// share its date with one more for the sake of its domain.
func TestPropertyNodesOfOneAgeAreEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		usable := slices.DeleteFunc(slices.Clone(p.dates), func(at time.Time) bool {
			return at.Before(p.now.Add(p.rule.Least)) || at.After(p.now.Add(p.rule.Lifetime))
		})
		if len(usable) == 0 {
			return
		}
		of := make(map[string]int)
		p.nodes = slices.DeleteFunc(p.nodes, func(n Node) bool {
			of[n.Domain]++
			return p.rule.PerDomain > 0 && of[n.Domain] > p.rule.PerDomain*len(usable)
		})
		for i := range p.nodes {
			p.nodes[i].Up, p.nodes[i].Latest, p.nodes[i].End = p.now, time.Time{}, time.Time{}
		}
		n, together := make(map[time.Time]int), make(map[string]int)
		for i, end := range p.rule.Assign(p.dates, p.nodes) {
			n[end]++
			together[p.nodes[i].Domain+end.String()]++
			if got := together[p.nodes[i].Domain+end.String()]; p.rule.PerDomain > 0 && got > p.rule.PerDomain {
				t.Fatalf("%d of domain %s end %v", got, p.nodes[i].Domain, end)
			}
		}
		most := (len(p.nodes) + len(usable) - 1) / len(usable)
		for at, nodes := range n {
			if nodes > most {
				t.Fatalf("%d nodes end %v: %d nodes over %d dates are %d at most", nodes, at, len(p.nodes), len(usable), most)
			}
		}
	})
}

// However many ends have come, no more of a domain are out of service than may be, and each node has its turn.
func TestPropertyNoDomainIsOutAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t)
		p.rule.PerDomain = max(1, p.rule.PerDomain)
		for i := range p.nodes {
			p.nodes[i].End = rapid.SampledFrom(p.dates).Draw(t, "came")
		}
		due := slices.Clone(p.nodes)
		for rounds := 0; len(due) > 0; rounds++ {
			if rounds > len(p.nodes) {
				t.Fatalf("%d nodes have no turn", len(due))
			}
			out := make(map[string]int)
			begun := p.rule.Begin(due, out)
			for domain, n := range out {
				if n > p.rule.PerDomain {
					t.Fatalf("%d nodes of domain %s are out of service", n, domain)
				}
			}
			for _, n := range begun {
				due = slices.DeleteFunc(due, func(d Node) bool { return d.Name == n.Name })
				if slices.ContainsFunc(due, func(d Node) bool { return d.Domain == n.Domain && d.End.Before(n.End) }) && out[n.Domain] < p.rule.PerDomain {
					t.Fatalf("%s is taken before one that ended earlier", n.Name)
				}
			}
		}
		if begun := p.rule.Begin(p.nodes, map[string]int{"a": p.rule.PerDomain, "b": p.rule.PerDomain, "c": p.rule.PerDomain}); len(begun) > 0 {
			t.Fatalf("%d nodes are taken beside as many as may be", len(begun))
		}
	})
}

func TestBeginWithoutABound(t *testing.T) {
	due := []Node{{Name: "b", End: time.Unix(2, 0)}, {Name: "c", End: time.Unix(1, 0)}, {Name: "a", End: time.Unix(2, 0)}}
	var names string
	for _, n := range treadmill.Begin(due, make(map[string]int)) {
		names += n.Name
	}
	if names != "cab" {
		t.Errorf("they are taken in the order %s", names)
	}
}

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
	placementtest.Must(t, err)
	s, err := ParseSchedule("sat/02:30,sun/02:30,mon/02:30", berlin)
	placementtest.Must(t, err)
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
