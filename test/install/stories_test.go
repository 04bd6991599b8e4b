// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestNoStoryIsNoSuccess asks for stories by names that none has, and wants that to be said before any is told and
// any cluster is made; and asks for some that there are, without telling them.
func TestNoStoryIsNoSuccess(t *testing.T) {
	run := func(env string, command ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), env, "DOCKER_HOST=tcp://127.0.0.1:1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const want = "RUN=Typo is in the name of no story of "
	for env, command := range map[string][]string{
		"RUN=Typo": {"hack/e2e-kind.sh"},
		"":         {"make", "--assume-old=bin/espalier-scheduler", "--assume-old=bin/devcluster", "--assume-old=bin/kwok", "e2e-reliability", "RUN=Typo"},
	} {
		if said, err := run(env, command...); err == nil || !strings.Contains(said, want) {
			t.Errorf("%s %q: want an error with %q, got %v:\n%s", env, command, want, err, said)
		}
	}
	// What is behind the slash is known by the story alone.
	if said, err := run("", "hack/stories.sh", "PullThatFails/typo", "./test/kubelet"); err != nil {
		t.Errorf("a name that there is: %v\n%s", err, said)
	}
}
