// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Core is what a suite tells with -short.
type Core struct {
	// Names are those of stories, or of parts of them.
	Names []string
	// Whole is the command that tells all.
	Whole string

	mu    sync.Mutex // guards begun
	begun []string
}

// Begin skips a story or a part of one that is not in the core, with -short. A story passes of which a part is in the core.
func (c *Core) Begin(t interface {
	Helper()
	Name() string
	Skipf(format string, args ...any)
}) {
	t.Helper()
	if !given("test.short", "true") {
		return
	}
	if !slices.ContainsFunc(c.Names, func(name string) bool { return name == t.Name() || strings.HasPrefix(name, t.Name()+"/") }) {
		t.Skipf("it is not told with -short, but by %s", c.Whole)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = append(c.begun, t.Name())
}

// check says which names of the core no story has: whoever renames one would tell less, and not know.
func (c *Core) check() error {
	if c == nil || !given("test.short", "true") || !given("test.run", "") || !given("test.skip", "") {
		return nil
	}
	for _, name := range c.Names {
		if !slices.Contains(c.begun, name) {
			return fmt.Errorf("the core has %s, which has not begun: there is no such story, or it does not ask whether it is in the core", name)
		}
	}
	return nil
}

// given reports whether a flag has a value.
func given(name, value string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() == value
}
