// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/commandtest"
)

// run executes the command, and returns what it prints. It must end before it needs
// an API server.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newCommand("v1.2.3")
	cmd.SilenceErrors = true // as main has it
	// The flag is one for all commands of the process.
	t.Cleanup(func() { _ = cmd.Flags().Set("version", "false") })
	return commandtest.Run(t, cmd, args...)
}

func TestVersion(t *testing.T) {
	// A kubeconfig that does not exist would be complained of.
	for _, flag := range []string{"--version", "--version=true", "--version=raw"} {
		out, err := run(t, flag, "--kubeconfig=/does/not/exist")
		if err != nil || !strings.HasPrefix(out, "espalier-scheduler v1.2.3 (Kubernetes ") || strings.Count(out, "\n") != 1 {
			t.Errorf("%s prints %q, %v", flag, out, err)
		}
	}
}

func TestMistakesAreOneLine(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	for _, tc := range []struct {
		name string
		args []string
		want []string // the error holds them all
	}{
		{"unknown flag", []string{"--kube-config=x"}, []string{"--kube-config", "--help"}},
		{"no number", []string{"--kube-api-qps=fast"}, []string{"--kube-api-qps", `"fast"`, "--help"}},
		{"an argument", []string{"start"}, []string{`"start"`}},
		{"no file", []string{"--config=/does/not/exist"}, []string{"--config", "/does/not/exist"}},
		{"no kubeconfig", []string{"--kubeconfig=/does/not/exist", "--secure-port=0"}, []string{"kubeconfig", "/does/not/exist"}},
		{"no API server", []string{"--secure-port=0"}, []string{"--kubeconfig", "clientConnection.kubeconfig", "pod"}},
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

func TestHelp(t *testing.T) {
	out, err := run(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"espalier-scheduler places the pods", "espalier-scheduler [flags]"} {
		if !strings.Contains(out, part) {
			t.Errorf("help does not say %q", part)
		}
	}
}

// TestFlags holds the flags that are promised to work with and without --config.
func TestFlags(t *testing.T) {
	flags := newCommand("test").Flags()
	for _, name := range []string{"config", "kubeconfig", "leader-elect", "kube-api-qps", "kube-api-burst", "secure-port", "bind-address", "v", "version"} {
		if f := flags.Lookup(name); f == nil || f.Deprecated != "" || f.Hidden {
			t.Errorf("--%s is %+v", name, f)
		}
	}
}

func TestUntilTold(t *testing.T) {
	ended := errors.New("ended")
	if err := untilTold(func() error { return ended }); !errors.Is(err, ended) {
		t.Errorf("a scheduler that ends by itself: %v", err)
	}
	if err := untilTold(func() error { return nil }); err != nil {
		t.Errorf("a scheduler that ends well: %v", err)
	}
	err := untilTold(func() error {
		seen := make(chan os.Signal, 1)
		signal.Notify(seen, syscall.SIGTERM)
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-seen
		signal.Stop(seen) // returns when all who listen have been told
		return ended
	})
	if err != nil {
		t.Errorf("a scheduler that is terminated: %v", err)
	}
}
