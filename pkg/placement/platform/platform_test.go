// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"slices"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
)

// The vectors of 2.7, on its three nodes. The words "2.7" in a name say that it
// is SwarmKit's own case.
func TestVector_2_7_Fits(t *testing.T) {
	nodes := []struct {
		name string
		platform.Platform
	}{
		{"n1", platform.Platform{OS: "linux", Arch: "x86_64"}},
		{"n2", platform.Platform{OS: "windows", Arch: "amd64"}},
		{"n3", platform.Platform{}},
	}
	for _, tc := range []struct {
		name, os, listed string
		want             []string
	}{
		{"2.7 amd64 and linux", "", "linux/amd64", []string{"n1"}},
		{"2.7 arm and linux", "", "linux/arm", nil},
		{"2.7 no wish", "", "", []string{"n1", "n2", "n3"}},
		{"2.7 any architecture and linux", "", "linux", []string{"n1"}},
		{"2.7 two platforms", "", "linux/amd64,windows/x86_64", []string{"n1", "n2"}},
		{"any system and amd64", "", "/amd64", []string{"n1", "n2"}},
		{"the spec's system", "windows", "", []string{"n2"}},
		{"the spec's system and a list", "linux", "linux/amd64,windows/amd64", []string{"n1"}},
		{"a spec that contradicts the list", "windows", "linux/amd64", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wish := platform.Wish{OS: tc.os}
			if tc.listed != "" {
				wish.Listed = parse(t, tc.listed)
			}
			if want := tc.os == "" && tc.listed == ""; wish.Empty() != want {
				t.Errorf("Empty() is %t", wish.Empty())
			}
			var got []string
			for _, n := range nodes {
				if wish.Fits(n.Platform) {
					got = append(got, n.name)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("fits %v, want %v", got, tc.want)
			}
		})
	}
}

// A node may tell one part and not the other: what it does not tell is not taken for granted.
func TestFitsHalfANode(t *testing.T) {
	linux := platform.Platform{OS: "linux"}
	for listed, want := range map[string]bool{"linux": true, "linux/": true, "linux/arm64": false, "/arm64": false, "windows": false} {
		if got := (platform.Wish{Listed: parse(t, listed)}).Fits(linux); got != want {
			t.Errorf("%s on a node that tells only linux: %t", listed, got)
		}
	}
}

func TestArchitecture(t *testing.T) {
	for name, want := range map[string]string{
		"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "arm": "arm", "X86_64": "X86_64", "": "",
	} {
		if got := platform.Architecture(name); got != want {
			t.Errorf("Architecture(%q) = %q, want %q", name, got, want)
		}
	}
}

func parse(t *testing.T, s string) []platform.Platform {
	t.Helper()
	p, err := platform.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
