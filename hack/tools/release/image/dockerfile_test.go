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
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scheduler", "controller"} {
		_, stage, ok := strings.Cut(string(content), "FROM scratch AS "+name+"\n")
		if !ok {
			t.Fatalf("the Dockerfile has no target %s from scratch", name)
		}
		stage, _, _ = strings.Cut(stage, "\n\n")
		want := []string{
			"COPY --from=build /src/bin/espalier-" + name + " /espalier-" + name,
			"USER " + user,
			`ENTRYPOINT ["/espalier-` + name + `"]`,
		}
		if got := strings.Split(strings.TrimSpace(stage), "\n"); !slices.Equal(got, want) {
			t.Errorf("%s is\n%q, want\n%q", name, got, want)
		}
	}
}
