// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestBillOfThisTest describes the test's own binary, which is linked from the
// library that it is tested with.
func TestBillOfThisTest(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(t.TempDir(), "1.json"), filepath.Join(t.TempDir(), "2.json")
	for _, output := range []string{first, second} {
		if err := run(binary, "v1.2.3+four", output); err != nil {
			t.Fatal(err)
		}
	}
	one, errOne := os.ReadFile(first)
	two, errTwo := os.ReadFile(second)
	if errOne != nil || errTwo != nil || !bytes.Equal(one, two) {
		t.Error("two bills of the same binary are not the same")
	}
	var got cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(one), cdx.BOMFileFormatJSON).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Metadata.Component.Version != "v1.2.3+four" || !strings.HasSuffix(got.Metadata.Component.PackageURL, "@v1.2.3%2Bfour") {
		t.Errorf("it is about %+v", got.Metadata.Component)
	}
	for _, want := range []string{"github.com/CycloneDX/cyclonedx-go", "std"} {
		at := slices.IndexFunc(*got.Components, func(c cdx.Component) bool { return c.Name == want })
		if at < 0 || (*got.Components)[at].Version == "" {
			t.Errorf("%s is not among the components, or has no version", want)
		}
	}
	if last := (*got.Components)[len(*got.Components)-1]; "go"+last.Version != runtime.Version() {
		t.Errorf("Go is %s, and the bill says %s", runtime.Version(), last.Version)
	}
	if n := len(*(*got.Dependencies)[0].Dependencies); n != len(*got.Components) {
		t.Errorf("%d of %d components are dependencies", n, len(*got.Components))
	}
}

func TestRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ binary, want string }{
		"nothing given":   {"", "give all of"},
		"not built by Go": {text, "text: unrecognized file format"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(tc.binary, "v1", filepath.Join(t.TempDir(), "out"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}
