// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostport

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

const (
	rangeSeparator    = "-"
	protocolSeparator = "/"
)

const (
	allowedPort     = "write a port as 22/tcp, 8000-8010/udp, 127.0.0.1:9100/tcp or [::1]:9100/tcp"
	allowedNumber   = "a port is a whole number from 1 to 65535"
	allowedProtocol = "use tcp, udp or sctp"
	allowedAddress  = "an address is an IP address without a zone, such as 127.0.0.1, or in brackets [::1]"
)

var entries = syntax.Entries{Noun: "port", Max: MaxRanges, Allowed: allowedPort, Fewer: "write at most " + strconv.Itoa(MaxRanges) + ", and neighbours as one range"}

// Parse reads ports, as in
//
//	22/tcp,8000-8010/udp,127.0.0.1:9100/tcp,[::1]:9100/tcp
//
// A port without an address is held on every address of the node, as is one at
// 0.0.0.0 or [::]. White space around commas is dropped, protocols are read in any case,
// and a text with nothing in it is no ports. The protocol must be written: a port that is
// meant for two and read as one would be given away. The error is a *syntax.Error that
// names the first thing that is wrong: nothing is skipped.
func Parse(s string) (Set, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	ranges, err := syntax.ParseList(s, entries, func(_ []Range, text string) (Range, *syntax.Error) { return parseRange(text) })
	if err != nil {
		return nil, err
	}
	return sorted(ranges), nil
}

// ParseRange reads one port or range as Parse does. The error is a *syntax.Error.
func ParseRange(s string) (Range, error) {
	r, err := parseRange(strings.TrimSpace(s))
	if err != nil {
		return Range{}, err
	}
	return r, nil
}

func parseRange(text string) (Range, *syntax.Error) {
	if text == "" {
		return Range{}, syntax.Refuse("empty port", text, "remove the comma, or "+allowedPort)
	}
	where, word, ok := strings.Cut(text, protocolSeparator)
	if !ok {
		return Range{}, syntax.Refuse("no protocol in", text, allowedPort)
	}
	var r Range
	var err *syntax.Error
	if r.Protocol = parseProtocol(word); r.Protocol == "" {
		return Range{}, syntax.Refuse("unknown protocol", word, allowedProtocol)
	}
	if r.Address, where, err = cutAddress(where); err != nil {
		return Range{}, err
	}
	if r.First, r.Last, err = parseNumbers(where); err != nil {
		return Range{}, err
	}
	return r, nil
}

// parseProtocol returns "" for a word that is none.
func parseProtocol(word string) Protocol {
	i := slices.IndexFunc(protocols, func(p Protocol) bool {
		// In Unicode's folding "s" also is the long s, which takes two bytes and so
		// is ruled out by its length.
		return len(word) == len(p) && strings.EqualFold(word, string(p))
	})
	if i < 0 {
		return ""
	}
	return protocols[i]
}

// cutAddress takes the address off the front, where there is one.
func cutAddress(s string) (address netip.Addr, rest string, _ *syntax.Error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return netip.Addr{}, s, nil
	}
	text, rest := s[:i], s[i+1:]
	inside, bracketed := strings.CutPrefix(text, "[")
	if bracketed {
		inside, bracketed = strings.CutSuffix(inside, "]")
	}
	address, err := netip.ParseAddr(inside)
	// Without brackets the last part of an IPv6 address could be the port.
	if err != nil || address.Zone() != "" || bracketed != strings.Contains(inside, ":") {
		return netip.Addr{}, "", syntax.Refuse("invalid address", text, allowedAddress)
	}
	return Address(address), rest, nil
}

func parseNumbers(s string) (first, last uint16, err *syntax.Error) {
	a, b, isRange := strings.Cut(s, rangeSeparator)
	if first, err = parseNumber(a); err != nil || !isRange {
		return first, first, err
	}
	if last, err = parseNumber(b); err != nil {
		return 0, 0, err
	}
	if last < first {
		return 0, 0, syntax.Refuse("range that ends before it begins", s, "write the lower port first")
	}
	return first, last, nil
}

// parseNumber takes digits only: signs, exponents and other bases would be read in
// one place and not in the next.
func parseNumber(s string) (uint16, *syntax.Error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, syntax.Refuse("invalid port number", s, allowedNumber)
	}
	return uint16(n), nil
}
