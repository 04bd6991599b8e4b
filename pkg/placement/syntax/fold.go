// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import "strings"

// SameWord compares without regard to case where word is ASCII. In Unicode's
// folding "K" also is the Kelvin sign, which is longer and so is ruled out by its length.
func SameWord(s, word string) bool { return len(s) == len(word) && strings.EqualFold(s, word) }

// CutPrefixFold is strings.CutPrefix without regard to the case of an ASCII prefix.
func CutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !SameWord(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}
