// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the bill of materials of a binary, in CycloneDX: the modules
// that the binary itself says it was linked from, and not what some go.mod allows.
// The same binary gives the same bill.
package main

import (
	"bytes"
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	binary := flag.String("binary", "", "the binary, built by Go")
	version := flag.String("version", "", "its version")
	output := flag.String("output", "", "the file to write")
	flag.Parse()
	if err := run(*binary, *version, *output); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(binary, version, output string) error {
	if binary == "" || version == "" || output == "" {
		return fmt.Errorf("give all of --binary, --version and --output: they are %q, %q and %q", binary, version, output)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("--binary %s: %w", binary, err)
	}
	var text bytes.Buffer
	encoder := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(bill(filepath.Base(binary), version, info), cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("describing %s: %w", binary, err)
	}
	return os.WriteFile(output, text.Bytes(), 0o644)
}

// bill lists what a binary was linked from: the modules in the order of the binary,
// which is that of their paths, and then Go's own library.
func bill(name, version string, info *debug.BuildInfo) *cdx.BOM {
	root := cdx.Component{
		BOMRef: "binary", Type: cdx.ComponentTypeApplication, Name: name, Version: version,
		PackageURL: purl(info.Main.Path, version),
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}
	var components []cdx.Component
	var refs []string
	add := func(path, version, sum string) {
		component := cdx.Component{
			BOMRef: purl(path, version), Type: cdx.ComponentTypeLibrary, Name: path, Version: version,
			PackageURL: purl(path, version), Scope: cdx.ScopeRequired,
		}
		if sum != "" {
			component.Properties = &[]cdx.Property{{Name: "golang:sum", Value: sum}}
		}
		components, refs = append(components, component), append(refs, component.BOMRef)
	}
	for _, module := range info.Deps {
		// What is replaced is not what is linked.
		if module.Replace != nil {
			module = module.Replace
		}
		add(module.Path, module.Version, module.Sum)
	}
	add("std", strings.TrimPrefix(info.GoVersion, "go"), "")
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{Component: &root}
	b.Components = &components
	b.Dependencies = &[]cdx.Dependency{{Ref: root.BOMRef, Dependencies: &refs}}
	return b
}

// purl names a Go module for whoever looks up what is known about it.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
