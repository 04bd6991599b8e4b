// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

// run executes the command, which must end before it needs an API server.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newCommand("v1.2.3")
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
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
			if err == nil {
				t.Fatalf("it ended well: %s", out)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
			if out != "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("it is more than one line:\n%s%v", out, err)
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
