// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostport_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "2000"})
	m.Run()
}

func parse(t testing.TB, text string) hostport.Set {
	t.Helper()
	set, err := hostport.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestUnion(t *testing.T) {
	a, b := parse(t, "22/tcp,80/tcp"), parse(t, "22/tcp,53/udp")
	if got := hostport.Format(a.Union(b)); got != "22/tcp,53/udp,80/tcp" {
		t.Errorf("got %s", got)
	}
	if got := hostport.Format(a); got != "22/tcp,80/tcp" {
		t.Errorf("a set became %s when it was united with another", got)
	}
}

// A range conflicts with what one of its ports conflicts with, and conflicts go both ways.
func TestConflictsIsTheRuleOfSinglePorts(t *testing.T) {
	addresses := []netip.Addr{{}, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1")}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (netip.Addr, hostport.Protocol) {
			return rapid.SampledFrom(addresses).Draw(t, label+" address"),
				rapid.SampledFrom([]hostport.Protocol{hostport.TCP, hostport.UDP, hostport.SCTP}).Draw(t, label+" protocol")
		}
		first := rapid.Uint16Range(1, 12).Draw(t, "first")
		r := hostport.Range{First: first, Last: first + rapid.Uint16Range(0, 4).Draw(t, "more")}
		r.Address, r.Protocol = draw("range")
		p := hostport.Port{Number: rapid.Uint16Range(1, 18).Draw(t, "number")}
		p.Address, p.Protocol = draw("port")

		want := false
		for n := r.First; n <= r.Last; n++ {
			sameAddress := r.Address == p.Address || r.Address == netip.Addr{} || p.Address == netip.Addr{}
			want = want || n == p.Number && r.Protocol == p.Protocol && sameAddress
		}
		if got := (hostport.Set{r}).Conflicts(p); got != want {
			t.Errorf("%v conflicts with %v: %t", r, p, got)
		}
		back := hostport.Set{{Address: p.Address, Protocol: p.Protocol, First: p.Number, Last: p.Number}}
		single := hostport.Port{Address: r.Address, Protocol: r.Protocol, Number: r.First}
		if there, andBack := (hostport.Set{{Address: r.Address, Protocol: r.Protocol, First: r.First, Last: r.First}}).Conflicts(p), back.Conflicts(single); there != andBack {
			t.Errorf("%v and %v conflict one way only", single, p)
		}
	})
}
