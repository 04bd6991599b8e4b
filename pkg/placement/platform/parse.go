// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"strconv"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

const (
	noun          = "platform"
	listSeparator = ","
	partSeparator = "/"
	// maxPart is what fits a label's value, which is where nodes tell theirs.
	maxPart = 63
)

const (
	allowedPlatform = "use OS/ARCH such as linux/amd64, OS alone for any architecture, or /ARCH for any operating system"
	allowedPart     = "a part is at most 63 lower-case letters, digits, '_', '-' or '.', such as linux, windows, amd64, arm64 or s390x"
	allowedVariant  = "a node does not tell its variant; use OS/ARCH"
)

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
	if strings.TrimSpace(s) == "" {
		return nil, syntax.Refuse("no platforms in", s, allowedPlatform)
	}
	if n := strings.Count(s, listSeparator) + 1; n > MaxPlatforms {
		return nil, syntax.Refuse(strconv.Itoa(n)+" platforms in", s, "use at most "+strconv.Itoa(MaxPlatforms))
	}
	var platforms []Platform
	for text := range strings.SplitSeq(s, listSeparator) {
		text = strings.TrimSpace(text)
		p, err := parseOne(text)
		if err != nil {
			return nil, err.In(noun, len(platforms)+1, text)
		}
		platforms = append(platforms, p)
	}
	return platforms, nil
}

func parseOne(text string) (Platform, *syntax.Error) {
	if text == "" {
		return Platform{}, syntax.Refuse("empty platform", text, "remove the comma, or "+allowedPlatform)
	}
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
	return strings.Join(texts, listSeparator)
}
