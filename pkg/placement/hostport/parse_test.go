// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostport_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// maxMessage bounds a refusal, in bytes.
const maxMessage = 1100

func TestParse(t *testing.T) {
	loopback, loopback6 := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")
	for _, tc := range []struct {
		name, in  string
		canonical string // "" if it is in itself
		want      hostport.Set
	}{
		{name: "nothing", in: ""},
		{name: "white space", in: " \n"},
		{name: "one port", in: "22/tcp", want: hostport.Set{{Protocol: hostport.TCP, First: 22, Last: 22}}},
		{name: "in order, whatever the order", in: "10250/tcp,22/tcp", canonical: "22/tcp,10250/tcp",
			want: hostport.Set{{Protocol: hostport.TCP, First: 22, Last: 22}, {Protocol: hostport.TCP, First: 10250, Last: 10250}}},
		{name: "the three protocols of one number", in: "53/udp,53/tcp,53/sctp", canonical: "53/sctp,53/tcp,53/udp",
			want: hostport.Set{{Protocol: hostport.SCTP, First: 53, Last: 53}, {Protocol: hostport.TCP, First: 53, Last: 53}, {Protocol: hostport.UDP, First: 53, Last: 53}}},
		{name: "a range", in: "8000-8010/udp", want: hostport.Set{{Protocol: hostport.UDP, First: 8000, Last: 8010}}},
		{name: "a range of one", in: "80-80/tcp", canonical: "80/tcp", want: hostport.Set{{Protocol: hostport.TCP, First: 80, Last: 80}}},
		{name: "all there are", in: "1-65535/sctp", want: hostport.Set{{Protocol: hostport.SCTP, First: 1, Last: 65535}}},
		{name: "an address", in: "127.0.0.1:9100/tcp", want: hostport.Set{{Address: loopback, Protocol: hostport.TCP, First: 9100, Last: 9100}}},
		{name: "an IPv6 address", in: "[0:0::1]:9100/tcp", canonical: "[::1]:9100/tcp",
			want: hostport.Set{{Address: loopback6, Protocol: hostport.TCP, First: 9100, Last: 9100}}},
		{name: "an IPv4 address as IPv6", in: "[::ffff:127.0.0.1]:1-2/tcp", canonical: "127.0.0.1:1-2/tcp",
			want: hostport.Set{{Address: loopback, Protocol: hostport.TCP, First: 1, Last: 2}}},
		{name: "every address, in three ways", in: "0.0.0.0:80/tcp,[::]:80/tcp,80/tcp", canonical: "80/tcp",
			want: hostport.Set{{Protocol: hostport.TCP, First: 80, Last: 80}}},
		{name: "white space and case", in: "\t22/TCP ,\n 53/Udp ", canonical: "22/tcp,53/udp",
			want: hostport.Set{{Protocol: hostport.TCP, First: 22, Last: 22}, {Protocol: hostport.UDP, First: 53, Last: 53}}},
		{name: "leading zeros are decimal", in: "010/tcp", canonical: "10/tcp", want: hostport.Set{{Protocol: hostport.TCP, First: 10, Last: 10}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			placementtest.WantParsed(t, hostport.Parse, hostport.Format, tc.in, tc.want, tc.canonical)
		})
	}
}

// The messages are what a person sees in a log, so they are told here in full.
func TestParseRefuses(t *testing.T) {
	const (
		ports     = `write a port as 22/tcp, 8000-8010/udp, 127.0.0.1:9100/tcp or [::1]:9100/tcp`
		numbers   = `a port is a whole number from 1 to 65535`
		protocols = `use tcp, udp or sctp`
		addresses = `an address is an IP address without a zone, such as 127.0.0.1, or in brackets [::1]`
	)
	placementtest.WantRefusals(t, hostport.Parse, maxMessage, map[string]string{
		",":                     `port 1 "": empty port: remove the comma, or ` + ports,
		"22/tcp,":               `port 2 "": empty port: remove the comma, or ` + ports,
		"22/tcp, ,23/tcp":       `port 2 "": empty port: remove the comma, or ` + ports,
		"22":                    `port 1 "22": no protocol in "22": ` + ports,
		"tcp":                   `port 1 "tcp": no protocol in "tcp": ` + ports,
		"22/":                   `port 1 "22/": unknown protocol: ` + protocols,
		"22/tpc":                `port 1 "22/tpc": unknown protocol "tpc": ` + protocols,
		"22/tcp/udp":            `port 1 "22/tcp/udp": unknown protocol "tcp/udp": ` + protocols,
		"22/ tcp":               `port 1 "22/ tcp": unknown protocol " tcp": ` + protocols,
		"22/\u017fctp":          `port 1 "22/ſctp": unknown protocol "ſctp": ` + protocols,
		"22 /tcp":               `port 1 "22 /tcp": invalid port number "22 ": ` + numbers,
		"/tcp":                  `port 1 "/tcp": invalid port number: ` + numbers,
		"0/tcp":                 `port 1 "0/tcp": invalid port number "0": ` + numbers,
		"65536/tcp":             `port 1 "65536/tcp": invalid port number "65536": ` + numbers,
		"+22/tcp":               `port 1 "+22/tcp": invalid port number "+22": ` + numbers,
		"-22/tcp":               `port 1 "-22/tcp": invalid port number: ` + numbers,
		"0x16/tcp":              `port 1 "0x16/tcp": invalid port number "0x16": ` + numbers,
		"ssh/tcp":               `port 1 "ssh/tcp": invalid port number "ssh": ` + numbers,
		"8000-/tcp":             `port 1 "8000-/tcp": invalid port number: ` + numbers,
		"1-2-3/tcp":             `port 1 "1-2-3/tcp": invalid port number "2-3": ` + numbers,
		"9-1/tcp":               `port 1 "9-1/tcp": range that ends before it begins "9-1": write the lower port first`,
		"1/tcp,:22/tcp":         `port 2 ":22/tcp": invalid address: ` + addresses,
		"localhost:22/tcp":      `port 1 "localhost:22/tcp": invalid address "localhost": ` + addresses,
		"127.1:22/tcp":          `port 1 "127.1:22/tcp": invalid address "127.1": ` + addresses,
		"010.0.0.1:22/tcp":      `port 1 "010.0.0.1:22/tcp": invalid address "010.0.0.1": ` + addresses,
		"10.0.0.0/8:22/tcp":     `port 1 "10.0.0.0/8:22/tcp": unknown protocol "8:22/tcp": ` + protocols,
		"[127.0.0.1]:22/tcp":    `port 1 "[127.0.0.1]:22/tcp": invalid address "[127.0.0.1]": ` + addresses,
		"::1:22/tcp":            `port 1 "::1:22/tcp": invalid address "::1": ` + addresses,
		"[::1:22/tcp":           `port 1 "[::1:22/tcp": invalid address "[::1": ` + addresses,
		"[::1]22/tcp":           `port 1 "[::1]22/tcp": invalid address "[:": ` + addresses,
		"[fe80::1%eth0]:22/tcp": `port 1 "[fe80::1%eth0]:22/tcp": invalid address "[fe80::1%eth0]": ` + addresses,
	})
}

func TestParseRange(t *testing.T) {
	got, err := hostport.ParseRange(" 127.0.0.1:8000-8010/UDP ")
	if err != nil || got.String() != "127.0.0.1:8000-8010/udp" {
		t.Errorf("got %v, %v", got, err)
	}
	// One range is one range: a list of lists would be read in two ways.
	for in, want := range map[string]string{
		"22/tcp,23/tcp": `unknown protocol "tcp,23/tcp": use tcp, udp or sctp`,
		"":              `empty port ""`,
		"53":            `no protocol in "53"`,
	} {
		if _, err := hostport.ParseRange(in); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ParseRange(%q): %v, want %s", in, err, want)
		}
	}
}

func TestParseBounds(t *testing.T) {
	many := func(n int) string { return placementtest.Many(n, "1%d/tcp", ",") }
	if set, err := hostport.Parse(many(hostport.MaxRanges)); err != nil || len(set) != hostport.MaxRanges {
		t.Errorf("at the bound: %d ports, %v", len(set), err)
	}
	placementtest.WantBounds(t, hostport.Parse, maxMessage, map[string]string{
		many(hostport.MaxRanges + 1):                  "257 ports in",
		strings.Repeat(",", 256<<10):                  "262145 ports in",
		strings.Repeat("é", 128<<10):                  "no protocol in",
		"1/" + strings.Repeat("\xff", 256<<10):        "unknown protocol",
		strings.Repeat("\x00", 256<<10) + ":1/tcp":    "invalid address",
		strings.Repeat("9", 256<<10) + "/tcp":         "invalid port number",
		"1-" + strings.Repeat("\n", 256<<10) + "/tcp": "invalid port number",
	})
}

// checkSet holds a set to its invariants.
func checkSet(t *testing.T, s hostport.Set) {
	t.Helper()
	if len(s) > hostport.MaxRanges {
		t.Errorf("%d ranges", len(s))
	}
	for i, r := range s {
		if r.First == 0 || r.Last < r.First || !slices.Contains([]hostport.Protocol{hostport.TCP, hostport.UDP, hostport.SCTP}, r.Protocol) {
			t.Errorf("range %d is %#v", i, r)
		}
		if r.Address != hostport.Address(r.Address) {
			t.Errorf("the address of range %d is %v", i, r.Address)
		}
		if i > 0 && s[i-1].Compare(r) >= 0 {
			t.Errorf("%v is before %v", s[i-1], r)
		}
	}
}

// FuzzParse holds the parser to what its callers rely on: it never panics, what it
// takes is in order and survives Format, what it refuses fits an event.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "22/tcp,10250/tcp", "8000-8010/udp, 1-65535/SCTP", "127.0.0.1:9100/tcp,[::1]:9100/tcp,[::ffff:10.0.0.1]:1/tcp",
		"0.0.0.0:1/tcp,[::]:1/tcp,1/tcp", "[fe80::1%eth0]:1/tcp", "22/tcp,22/tcp,,", "::1:22/tcp", "0/tcp,-1/udp,9-1/udp,65536/\u017fctp\x00\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if set, taken := placementtest.CheckParse(t, hostport.Parse, hostport.Format, maxMessage, in); taken {
			checkSet(t, set)
		}
	})
}

func ExampleParse() {
	held, err := hostport.Parse("10250/tcp, 22/TCP, 127.0.0.1:9100/tcp, 8000-8010/udp")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hostport.Format(held))
	fmt.Println(held.Conflicts(hostport.Port{Protocol: hostport.UDP, Number: 8005}))
	fmt.Println(held.Conflicts(hostport.Port{Protocol: hostport.TCP, Number: 8005}))

	_, err = hostport.Parse("22/tcp,53")
	fmt.Println(err)
	// Output:
	// 22/tcp,8000-8010/udp,127.0.0.1:9100/tcp,10250/tcp
	// true
	// false
	// port 2 "53": no protocol in "53": write a port as 22/tcp, 8000-8010/udp, 127.0.0.1:9100/tcp or [::1]:9100/tcp
}

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "2000"})
	m.Run()
}

func parse(t testing.TB, text string) hostport.Set {
	t.Helper()
	set, err := hostport.Parse(text)
	placementtest.Must(t, err)
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
