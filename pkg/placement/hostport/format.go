// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostport

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// String is the canonical text of a port: "80/tcp", "127.0.0.1:80/tcp" or
// "[::1]:80/tcp".
func (p Port) String() string { return p.asRange().String() }

// String is the canonical text of a range: that of a port where it is only one,
// "8000-8010/udp" otherwise. ParseRange reads the text of a valid range as the same.
func (r Range) String() string {
	var b strings.Builder
	switch {
	case r.Address.Is6():
		b.WriteString("[" + r.Address.String() + "]:")
	case r.Address != netip.Addr{}:
		b.WriteString(r.Address.String() + ":")
	}
	b.WriteString(strconv.Itoa(int(r.First)))
	if r.Last != r.First {
		b.WriteString(rangeSeparator + strconv.Itoa(int(r.Last)))
	}
	b.WriteString(protocolSeparator + string(r.Protocol))
	return b.String()
}

// Format is the canonical text of a set: Parse(Format(s)) is s for any valid s. The
// text of no ports is empty.
func Format(s Set) string {
	texts := make([]string, len(s))
	for i, r := range s {
		texts[i] = r.String()
	}
	return strings.Join(texts, syntax.Separator)
}
