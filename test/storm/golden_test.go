// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	gocmp "github.com/google/go-cmp/cmp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// goldenFile is what comes of each pod of each section.
const goldenFile = "testdata/golden.txt"

var update = flag.Bool("update", false, "write "+goldenFile+" anew; read what changes there before you commit it")

// section is a configuration of the scheduler, with a cluster of its own and what happens in it.
type section struct {
	name string
	// about says what is configured, for who reads the file.
	about string
	run   func(*goldenRun)
}

// TestPlacements holds what the scheduler makes of each of some 350 pods of every kind, under every profile that is shipped: the node, the levels, all
// annotations that it is bound with, or why it is refused, and the counters that move. One pod is decided at a time, by the clock of a bubble, so
// that nothing is left to chance. A change that only moves code changes no line of the file.
//
// That everything takes part is asserted as well: by a plugin that nothing asks, or a counter that never moves, no change would be seen.
func TestPlacements(t *testing.T) {
	t.Cleanup(noteErrors())
	// One thing happens at a time: a watcher is a few changes behind at most, and there are hundreds of watchers.
	t.Cleanup(func(size int32) func() { return func() { watch.DefaultChanSize = size } }(watch.DefaultChanSize))
	watch.DefaultChanSize = 1000
	// A scheduler asks for signals. What delivers them lives as long as the process, so that it must not begin in a bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	signal.Stop(signals)
	want := readSections(t)
	got, seen := make(map[string]string), newSeen(t)
	for _, s := range sections {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { got[s.name] = runSection(t, s, seen) })
			if !*update {
				compareBlocks(t, want[s.name], got[s.name])
			}
		})
	}
	if len(got) == len(sections) { // some alone, asked for with -run, say nothing of the whole
		seen.check(t)
	}
	all := make([]string, len(sections))
	for i, s := range sections {
		all[i] = cmp.Or(got[s.name], want[s.name])
	}
	text := strings.Join(all, "\n\n") + "\n"
	if len(text) > 200<<10 {
		t.Errorf("the file has %d bytes, which nobody reads", len(text))
	}
	if *update {
		if err := os.WriteFile(goldenFile, []byte(text), 0o644); err != nil { //nolint:gosec // anybody may read it
			t.Fatal(err)
		}
	}
}

// beginsSection begins the first line of a section.
const beginsSection = "== "

// readSections returns what the file has of each section.
func readSections(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil && !*update {
		t.Fatalf("%v: run the test with -update", err)
	}
	all := make(map[string]string)
	for part := range strings.SplitSeq("\n\n"+strings.TrimSpace(string(text)), "\n\n"+beginsSection) {
		name, _, _ := strings.Cut(part, ":")
		all[name] = beginsSection + part
	}
	return all
}

// block is a line that begins at the margin, with those below it that do not.
type block struct {
	title string
	lines []string
}

func blocksOf(text string) (all []block) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, " ") && len(all) > 0 {
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		} else if line != "" {
			all = append(all, block{title: line})
		}
	}
	return all
}

// compareBlocks names what has changed, and how.
func compareBlocks(t *testing.T, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	var changed []string
	var diffs strings.Builder
	note := func(title string, want, got []string) {
		changed = append(changed, title)
		fmt.Fprintf(&diffs, "\n%s\n%s", title, gocmp.Diff(want, got))
	}
	was, is := blocksOf(want), blocksOf(got)
	find := func(in []block, title string) *block {
		if i := slices.IndexFunc(in, func(b block) bool { return b.title == title }); i >= 0 {
			return &in[i]
		}
		return nil
	}
	for _, b := range was {
		if now := find(is, b.title); now == nil {
			note(b.title+" (is gone)", b.lines, nil)
		} else if !slices.Equal(b.lines, now.lines) {
			note(b.title, b.lines, now.lines)
		}
	}
	for _, b := range is {
		if find(was, b.title) == nil {
			note(b.title+" (is new)", nil, b.lines)
		}
	}
	if len(changed) == 0 {
		t.Error("the same blocks come in another order")
		return
	}
	t.Errorf("of %d blocks these %d are others than in %s (-want +got):\n%s\n%s", len(was), len(changed), goldenFile, strings.Join(changed, "\n"), diffs.String())
}

// reported takes the errors that are only logged, while it is not nil.
var reported func(error, string)

// noteErrors has errors that are only logged be noted, and nobody wait after one: that wait goes by a clock which is not that of a
// bubble. The returned function takes it back.
func noteErrors() (restore func()) {
	was := utilruntime.ErrorHandlers
	//nolint:reassign // it is what apimachinery has to change who is told of errors
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, msg string, _ ...any) {
		if reported != nil {
			reported(err, msg)
		}
	}}
	return func() { utilruntime.ErrorHandlers = was } //nolint:reassign // as above
}
