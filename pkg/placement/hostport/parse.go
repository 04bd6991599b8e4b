// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostport

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

const (
	portSeparator     = ","
	rangeSeparator    = "-"
	protocolSeparator = "/"
)

const (
	allowedPort     = "write a port as 22/tcp, 8000-8010/udp, 127.0.0.1:9100/tcp or [::1]:9100/tcp"
	allowedNumber   = "a port is a whole number from 1 to 65535"
	allowedProtocol = "use tcp, udp or sctp"
	allowedAddress  = "an address is an IP address without a zone, such as 127.0.0.1, or in brackets [::1]"
)

// Parse reads ports, as in
//
//	22/tcp,8000-8010/udp,127.0.0.1:9100/tcp,[::1]:9100/tcp
//
// A port without an address is held on every address of the node, as is one at
// 0.0.0.0 or [::]. White space around commas is dropped, protocols are read in any case,
// and a text with nothing in it is no ports. The protocol must be written: a port that is
// meant for two and read as one would be given away. The error is a *SyntaxError that
// names the first thing that is wrong: nothing is skipped.
func Parse(s string) (Set, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	if n := strings.Count(s, portSeparator) + 1; n > MaxRanges {
		return nil, refuse(strconv.Itoa(n)+" ports in", s, "write at most "+strconv.Itoa(MaxRanges)+", and neighbours as one range")
	}
	var ranges []Range
	number := 0
	for text := range strings.SplitSeq(s, portSeparator) {
		number++
		text = strings.TrimSpace(text)
		r, err := parseRange(text)
		if err != nil {
			return nil, err.In(noun, number, text)
		}
		ranges = append(ranges, r)
	}
	return sorted(ranges), nil
}

// ParseRange reads one port or range as Parse does. The error is a *SyntaxError.
func ParseRange(s string) (Range, error) {
	r, err := parseRange(strings.TrimSpace(s))
	if err != nil {
		return Range{}, err
	}
	return r, nil
}

func parseRange(text string) (Range, *SyntaxError) {
	if text == "" {
		return Range{}, refuse("empty port", text, "remove the comma, or "+allowedPort)
	}
	where, word, ok := strings.Cut(text, protocolSeparator)
	if !ok {
		return Range{}, refuse("no protocol in", text, allowedPort)
	}
	var r Range
	var err *SyntaxError
	if r.Protocol = parseProtocol(word); r.Protocol == "" {
		return Range{}, refuse("unknown protocol", word, allowedProtocol)
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
func cutAddress(s string) (address netip.Addr, rest string, _ *SyntaxError) {
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
		return netip.Addr{}, "", refuse("invalid address", text, allowedAddress)
	}
	return Address(address), rest, nil
}

func parseNumbers(s string) (first, last uint16, err *SyntaxError) {
	a, b, isRange := strings.Cut(s, rangeSeparator)
	if first, err = parseNumber(a); err != nil || !isRange {
		return first, first, err
	}
	if last, err = parseNumber(b); err != nil {
		return 0, 0, err
	}
	if last < first {
		return 0, 0, refuse("range that ends before it begins", s, "write the lower port first")
	}
	return first, last, nil
}

// parseNumber takes digits only: signs, exponents and other bases would be read in
// one place and not in the next.
func parseNumber(s string) (uint16, *SyntaxError) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, refuse("invalid port number", s, allowedNumber)
	}
	return uint16(n), nil
}
