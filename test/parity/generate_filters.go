// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"slices"
	"strings"
)

func (g generator) oneOf(texts ...string) string { return texts[g.IntN(len(texts))] }

// constraint draws one in the language that both read alike. Not in it are the keys
// and forms that one of the two refuses, which have tests of their own, and for
// node.platform.arch the names that only Linux uses.
func (g generator) constraint() string {
	// Most must hold on some node: "==" is rarer where a node has a value for itself.
	operator, value := g.oneOf("==", "!="), ""
	key := g.oneOf("node.labels.disk", "node.labels.disk", "node.labels.az", "node.labels.rack", "node.labels.none",
		"node.hostname", "node.id", "node.platform.os", "node.platform.arch")
	switch key {
	case "node.labels.disk":
		value = g.oneOf("ssd", "SSD", "Ssd", "s*d", "ss?", "hdd")
	case "node.labels.az", "node.labels.rack":
		value = g.oneOf("a", "B", "c", "no zone")
	case "node.labels.none":
		value = g.oneOf("x", "(y)")
		operator = g.oneOf("!=", "!=", "!=", "==")
	case "node.hostname", "node.id":
		value = g.oneOf("node-00", "NODE-01", "Node-02", "node-0", "node-..")
		operator = g.oneOf("!=", "!=", "!=", "==")
	case "node.platform.os":
		value = g.oneOf("linux", "Linux", "windows")
	case "node.platform.arch":
		value = g.oneOf("amd64", "AMD64", "arm64", "s390x")
	}
	// A label's key is the one part of a key that has a case.
	if prefix, ok := strings.CutPrefix(key, "node.labels."); ok {
		key = g.oneOf("node.labels.", "Node.Labels.") + g.oneOf(prefix, prefix, prefix, strings.ToUpper(prefix))
	} else if g.oneIn(4) {
		key = strings.ToUpper(key)
	}
	blank := g.oneOf("", " ", "  ")
	return key + blank + operator + blank + value
}

func aboutArch(constraint string) bool {
	return strings.HasPrefix(strings.ToLower(constraint), "node.platform.arch")
}

// wanted are the platforms of images, reported those of nodes: most nodes are alike.
var (
	wanted   = []string{"linux/amd64", "linux/x86_64", "linux/arm64", "linux/aarch64", "windows/amd64", "linux/", "/amd64", "/aarch64", "linux/s390x"}
	reported = []string{"linux/amd64", "linux/x86_64", "linux/amd64", "linux/x86_64", "linux/arm64", "linux/aarch64", "windows/amd64", "linux/", "/"}
)

func (g generator) platform(from []string) Platform {
	os, arch, _ := strings.Cut(g.oneOf(from...), "/")
	return Platform{OS: os, Arch: arch}
}

// ports draws some of few, each once.
func (g generator) ports(n int) []Port {
	all := []Port{{8080, "tcp"}, {8080, "udp"}, {8081, "tcp"}, {8080, "sctp"}}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return slices.Clone(all[:n])
}
