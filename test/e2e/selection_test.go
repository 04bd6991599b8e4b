// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// label is what a story is about. Each has a core, of stories that show end to end what it is about. The others vary and repeat these, or tell
// the same of the stock scheduler.
type label struct {
	name   string
	inCore bool
}

var (
	spread    = label{name: "spread"}    // where pods are placed, and which of them are removed first
	moves     = label{name: "moves"}     // pods that are replaced elsewhere, and never missed
	tenants   = label{name: "tenants"}   // whose pods come first, and who makes way
	faults    = label{name: "faults"}    // nodes that do not answer, and pods that fail
	lifetimes = label{name: "lifetimes"} // nodes that end, and leases

	labels = []string{spread.name, moves.name, tenants.name, faults.name, lifetimes.name}
)

// core says that a story is in the core of its label.
func (l label) core() label {
	l.inCore = true
	return l
}

var (
	labelsFlag = flag.String("labels", strings.Join(labels, ","), "labels of the stories to tell, separated by commas")
	coreFlag   = flag.Bool("core", false, "tell only the stories in the core of their label, as make test does")
)

// stories counts them as they begin: all, those that the flags leave out, and those that are told. One that cannot be told on this cluster, and
// says so, is neither.
var stories struct{ all, leftOut, told atomic.Int64 }

// selectedLabels are those that the flag names.
func selectedLabels(flag string) ([]string, error) {
	names := strings.Split(flag, ",")
	for _, name := range names {
		if !slices.Contains(labels, name) {
			return nil, fmt.Errorf("-labels=%s: there is no label %q: use some of %s", flag, name, strings.Join(labels, ","))
		}
	}
	return names, nil
}

// selected counts a story, and skips it if the flags leave it out.
func selected(t *testing.T, l label) {
	t.Helper()
	stories.all.Add(1)
	names, err := selectedLabels(*labelsFlag)
	must(t, err)
	if slices.Contains(names, l.name) && (l.inCore || !*coreFlag) {
		t.Cleanup(func() {
			if !t.Skipped() {
				stories.told.Add(1)
			}
		})
		return
	}
	stories.leftOut.Add(1)
	core := ""
	if l.inCore {
		core = " -core"
	}
	t.Skipf("left out by -labels=%s -core=%t: -labels=%s%s selects it; `make e2e-nightly` tells all", *labelsFlag, *coreFlag, l.name, core)
}

// tally says how many stories were told. That the flags leave out all that there were is an error: nothing was tried.
func tally() (string, error) {
	all, told := stories.all.Load(), stories.told.Load()
	core := ""
	if *coreFlag {
		core = ", their core"
	}
	line := fmt.Sprintf("%d stories of %d told, labels %s%s", told, all, *labelsFlag, core)
	if all > 0 && stories.leftOut.Load() == all {
		return "", fmt.Errorf("%s: the flags leave out every story that -run selects", line)
	}
	return line, nil
}

// Each label has a core, and the page of scenarios says what it is about. What no label is called selects nothing, and is an error.
func TestEveryLabelHasACore(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	cores := make(map[string]int)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, m := range regexp.MustCompile(`\b(\w+)\.core\(\)`).FindAllStringSubmatch(string(text), -1) {
			cores[m[1]]++
		}
	}
	page, err := os.ReadFile("../../docs/scenarios.md")
	must(t, err)
	for _, name := range labels {
		if cores[name] == 0 {
			t.Errorf("no story is in the core of %s: -core would tell nothing of it", name)
		}
		if !strings.Contains(string(page), "\n| `"+name+"` |") {
			t.Errorf("docs/scenarios.md does not say what the label %s is about", name)
		}
	}
	for flag, known := range map[string]bool{*labelsFlag: true, "moves": true, "moves,spread": true, "": false, "move": false, "moves,": false} {
		if _, err := selectedLabels(flag); (err == nil) != known {
			t.Errorf("-labels=%s: %v", flag, err)
		}
	}
}
