// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

const (
	partSeparator = "/"
	// maxPart is what fits a label's value, which is where nodes tell theirs.
	maxPart = 63
)

const (
	allowedPlatform = "use OS/ARCH such as linux/amd64, OS alone for any architecture, or /ARCH for any operating system"
	allowedPart     = "a part is at most 63 lower-case letters, digits, '_', '-' or '.', such as linux, windows, amd64, arm64 or s390x"
	allowedVariant  = "a node does not tell its variant; use OS/ARCH"
)

var entries = syntax.Entries{Noun: "platform", Max: MaxPlatforms, Allowed: allowedPlatform}

// Parse reads the platforms of an image, as in
//
//	linux/amd64, linux/arm64
//
// White space around them is dropped. They come back in canonical form, at least
// one of them. The error is a *syntax.Error that names the first thing that is wrong.
//
// Docker's third part, the variant (linux/arm/v7), is refused: nothing on a node
// tells it, and to leave it out would run a program on a processor it is not for.
func Parse(s string) ([]Platform, error) {
	return syntax.ParseList(s, entries, parseOne)
}

func parseOne(_ []Platform, text string) (Platform, *syntax.Error) {
	os, arch, _ := strings.Cut(text, partSeparator)
	arch, variant, hasVariant := strings.Cut(arch, partSeparator)
	switch {
	case hasVariant:
		return Platform{}, syntax.Refuse("third part", variant, allowedVariant)
	case os == "" && arch == "":
		return Platform{}, syntax.Refuse("nothing wanted by", text, allowedPlatform)
	}
	for _, part := range []string{os, arch} {
		if !isPart(part) {
			return Platform{}, syntax.Refuse("invalid part", part, allowedPart)
		}
	}
	return Platform{OS: os, Arch: Architecture(arch)}, nil
}

// isPart allows what an operating system or architecture is called anywhere, and
// nothing in capitals: "Linux" would be compared with "linux" for ever.
func isPart(s string) bool {
	if len(s) > maxPart {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// Format is the canonical text of platforms: Parse(Format(x)) is x for whatever
// Parse returned. The text of none is empty.
func Format(platforms []Platform) string {
	texts := make([]string, len(platforms))
	for i, p := range platforms {
		texts[i] = p.String()
	}
	return strings.Join(texts, syntax.Separator)
}
