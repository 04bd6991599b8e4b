// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platform is what a program was built for, an operating system and an
// architecture, and the syntax in which Docker writes it: linux/amd64.
package platform

import "slices"

// Platform is one of them. In a wish an empty part stands for any; on a node it
// stands for a part that the node does not tell.
//
// The names are those of Go and of Docker's images. They are compared as they are,
// but for the two that a machine reports differently: see Architecture.
type Platform struct {
	OS, Arch string
}

// Wish is what a pod wants of its node's platform. The zero Wish wants nothing.
type Wish struct {
	// OS is the operating system that the pod's spec names; "" for none.
	OS string
	// Listed are the platforms that its image is built for; none for any.
	Listed []Platform
}

// MaxPlatforms bounds the platforms of one pod. Go itself knows about fifty.
const MaxPlatforms = 64

// Empty reports whether nothing is wanted.
func (w Wish) Empty() bool { return w.OS == "" && len(w.Listed) == 0 }

// Fits reports whether a node of the platform fulfils the wish.
func (w Wish) Fits(node Platform) bool {
	if w.OS != "" && w.OS != node.OS {
		return false
	}
	return len(w.Listed) == 0 || slices.ContainsFunc(w.Listed, func(p Platform) bool { return p.includes(node) })
}

// includes reports whether a wanted platform is that of a node. A node that tells
// nothing of itself is none of any: it could be the wrong one.
func (p Platform) includes(node Platform) bool {
	if node == (Platform{}) {
		return false
	}
	return (p.OS == "" || p.OS == node.OS) && (p.Arch == "" || Architecture(p.Arch) == Architecture(node.Arch))
}

// Architecture is the canonical name of an architecture. What Linux calls x86_64
// and aarch64, and Docker's engines report as such, are amd64 and arm64 in images
// and in the labels of a Kubernetes node.
func Architecture(name string) string {
	switch name {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	default:
		return name
	}
}

// String is the canonical text of a wanted platform: Parse reads it as the same.
func (p Platform) String() string {
	if p.Arch == "" {
		return p.OS
	}
	return p.OS + partSeparator + Architecture(p.Arch)
}
