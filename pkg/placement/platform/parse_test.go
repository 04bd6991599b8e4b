// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
)

// maxMessage bounds a refusal, in bytes.
const maxMessage = 1600

func ExampleParse() {
	platforms, err := platform.Parse("linux/amd64, linux/aarch64, windows")
	fmt.Println(platform.Format(platforms), err)

	_, err = platform.Parse("linux/amd64,linux/arm/v7")
	fmt.Println(err)
	// Output:
	// linux/amd64,linux/arm64,windows <nil>
	// platform 2 "linux/arm/v7": third part "v7": a node does not tell its variant; use OS/ARCH
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		in, canonical string
		want          []platform.Platform
	}{
		{"linux/amd64", "linux/amd64", []platform.Platform{{"linux", "amd64"}}},
		{" linux/x86_64 ,\n/aarch64", "linux/amd64,/arm64", []platform.Platform{{"linux", "amd64"}, {"", "arm64"}}},
		{"linux/,windows", "linux,windows", []platform.Platform{{"linux", ""}, {"windows", ""}}},
		{"linux/ppc64le,linux/s390x,wasip1/wasm", "linux/ppc64le,linux/s390x,wasip1/wasm",
			[]platform.Platform{{"linux", "ppc64le"}, {"linux", "s390x"}, {"wasip1", "wasm"}}},
	} {
		placementtest.WantParsed(t, platform.Parse, platform.Format, tc.in, tc.want, tc.canonical)
	}
}

func TestParseRefuses(t *testing.T) {
	const use = "use OS/ARCH such as linux/amd64, OS alone for any architecture, or /ARCH for any operating system"
	const part = "a part is at most 63 lower-case letters, digits, '_', '-' or '.', such as linux, windows, amd64, arm64 or s390x"
	placementtest.WantRefusals(t, platform.Parse, maxMessage, map[string]string{
		"":                        `no platforms in "": ` + use,
		" \n":                     `no platforms in " \n": ` + use,
		"/":                       `platform 1 "/": nothing wanted by "/": ` + use,
		"linux/amd64,":            `platform 2 "": empty platform: remove the comma, or ` + use,
		"Linux/amd64":             `platform 1 "Linux/amd64": invalid part "Linux": ` + part,
		"linux /amd64":            `platform 1 "linux /amd64": invalid part "linux ": ` + part,
		"linux/amd64 linux/arm64": `platform 1 "linux/amd64 linux/arm64": third part "arm64": a node does not tell its variant; use OS/ARCH`,
		"windows,linux/äx":        `platform 2 "linux/äx": invalid part "äx": ` + part,
		"linux/arm/":              `platform 1 "linux/arm/": third part: a node does not tell its variant; use OS/ARCH`,
	})
	many := strings.Repeat("linux,", platform.MaxPlatforms-1) + "linux"
	if _, err := platform.Parse(many); err != nil {
		t.Errorf("as many platforms as there may be: %v", err)
	}
	placementtest.WantBounds(t, platform.Parse, maxMessage, map[string]string{many + ",linux": "use at most 64"})
}

// FuzzParse holds the parser to what its callers rely on: it never panics, what it takes survives Format, what it refuses fits an event.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "linux/amd64", "linux/x86_64, windows/,/arm64", "linux/arm/v7", "/", ",", "Linux", "pac\u212a/\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		platforms, _ := placementtest.CheckParse(t, platform.Parse, platform.Format, maxMessage, in)
		for _, p := range platforms {
			node := platform.Platform{OS: p.OS, Arch: p.Arch}
			if !(platform.Wish{Listed: platforms}).Fits(node) {
				t.Errorf("%q does not take its own platform %v", in, node)
			}
		}
	})
}

// The vectors of 2.7, on its three nodes. The words "2.7" in a name say that it is SwarmKit's own case.
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
	placementtest.Must(t, err)
	return p
}
