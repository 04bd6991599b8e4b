// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDockerfileSaysTheSame wants the images of the Dockerfile to be those that are
// packed here: from scratch, one file, the same user and the same entry point.
func TestDockerfileSaysTheSame(t *testing.T) {
	content, err := os.ReadFile("../../../../Dockerfile")
	must(t, err)
	for _, name := range []string{"scheduler", "controller"} {
		_, stage, ok := strings.Cut(string(content), "FROM scratch AS "+name+"\n")
		if !ok {
			t.Fatalf("the Dockerfile has no target %s from scratch", name)
		}
		stage, _, _ = strings.Cut(stage, "\n\n")
		want := []string{"COPY --from=build /src/bin/espalier-" + name + " /espalier-" + name, "USER " + user, `ENTRYPOINT ["/espalier-` + name + `"]`}
		if got := strings.Split(strings.TrimSpace(stage), "\n"); !slices.Equal(got, want) {
			t.Errorf("%s is\n%q, want\n%q", name, got, want)
		}
	}
}

// TestDockerignoreLeavesOutWhatIsMade wants an engine to be given all files of the tree. Git calls
// a tree dirty that lacks one, and the version of the image would say so.
func TestDockerignoreLeavesOutWhatIsMade(t *testing.T) {
	made := patterns(t, ".gitignore")
	for _, pattern := range patterns(t, ".dockerignore") {
		if !slices.Contains(made, pattern) {
			t.Errorf(".dockerignore leaves out %s, which .gitignore does not", pattern)
		}
	}
}

// patterns reads a file at the root of the repository without what is said beside.
func patterns(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile("../../../../" + name)
	must(t, err)
	all := slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, "#") })
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}
