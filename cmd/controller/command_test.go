// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/commandtest"
)

// run executes the command, which must end before it needs an API server.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return commandtest.Run(t, newCommand("v1.2.3"), args...)
}

func TestMistakesAreOneLine(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	for _, tc := range []struct {
		name string
		args []string
		want []string // the error holds them all
	}{
		{"unknown flag", []string{"--kube-config=x"}, []string{"--kube-config"}},
		{"an argument", []string{"start"}, []string{`"start"`}},
		{"no kubeconfig", []string{"--kubeconfig=/does/not/exist"}, []string{"--kubeconfig", "/does/not/exist"}},
		{"no API server", nil, []string{"--kubeconfig", "pod"}},
		{"no schedulers", []string{"--scheduler-names="}, []string{"--scheduler-names"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := run(t, tc.args...)
			commandtest.WantMistake(t, err, tc.want...)
			if out != "" {
				t.Errorf("it prints more than the error:\n%s", out)
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	if out, err := run(t, "--version"); err != nil || !strings.Contains(out, "espalier-controller") || !strings.Contains(out, "v1.2.3") {
		t.Errorf("--version prints %q, %v", out, err)
	}
	out, err := run(t, "--help")
	for _, flag := range []string{"--kubeconfig", "--scheduler-names", "--leader-elect", "--health-probe-bind-address", "--metrics-bind-address"} {
		if err != nil || !strings.Contains(out, flag) {
			t.Errorf("help does not tell of %s: %v", flag, err)
		}
	}
}
