// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostport_test

import (
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// FuzzParse holds the parser to what its callers rely on: it never panics, what it
// takes is in order and survives Format, what it refuses fits an event.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"",
		"22/tcp,10250/tcp",
		"8000-8010/udp, 1-65535/SCTP",
		"127.0.0.1:9100/tcp,[::1]:9100/tcp,[::ffff:10.0.0.1]:1/tcp",
		"0.0.0.0:1/tcp,[::]:1/tcp,1/tcp",
		"[fe80::1%eth0]:1/tcp",
		"22/tcp,22/tcp,,",
		"::1:22/tcp",
		"0/tcp,-1/udp,9-1/udp,65536/\u017fctp\x00\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		set, err := hostport.Parse(in)
		if err != nil {
			if set != nil {
				t.Errorf("Parse(%q) returns ports and an error", in)
			}
			placementtest.CheckRefusal(t, err, maxMessage)
			return
		}
		checkSet(t, set)
		text := hostport.Format(set)
		again, err := hostport.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q) is formatted as %q, which is refused: %v", in, text, err)
		}
		checkSame(t, set, again)
		if s := hostport.Format(again); s != text {
			t.Errorf("Format(%q) is %q the second time", text, s)
		}
	})
}
