// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/espalier-scheduler/espalier/apis/config/scheme"
	"github.com/espalier-scheduler/espalier/internal/commandtest"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run executes the command, and returns what it prints. It must end before it needs an API server.
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

var update = flag.Bool("update", false, "write the page of the flags anew")

// docs/reference/scheduler.md has all flags: `go test ./cmd/scheduler -run Reference -update` writes it.
func TestReference(t *testing.T) {
	flags := newCommand("v0.0.0").Flags()
	text := "# Flags of espalier-scheduler\n\nAfter reading this page you know every flag of the scheduler. They are those of kube-scheduler. With the chart you set them by " +
		"`scheduler.extraArgs`.\n\n" + commandtest.Reference(flags)
	commandtest.WantPage(t, "../../docs/reference/scheduler.md", text, *update)
}

// Each profile has its own: a profile that only names the plugin has its defaults, wherever it names it, and one without it has nothing.
func TestBindings(t *testing.T) {
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: named
  plugins: {bind: {enabled: [{name: RecordingBinder}], disabled: [{name: DefaultBinder}]}}
- schedulerName: multi
  plugins: {multiPoint: {enabled: [{name: RecordingBinder}]}}
- schedulerName: quiet
  plugins: {bind: {enabled: [{name: RecordingBinder}], disabled: [{name: DefaultBinder}]}}
  pluginConfig: [{name: RecordingBinder, args: {candidates: 10, scheduledEvents: "Off"}}]
- schedulerName: stock
`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	candidates, announced := bindings(obj.(*schedulerapi.KubeSchedulerConfiguration).Profiles)
	if want := map[string]int{"named": 3, "multi": 3, "quiet": 10}; !maps.Equal(candidates, want) {
		t.Errorf("candidates are %v, want %v", candidates, want)
	}
	if got := slices.Collect(maps.Keys(announced)); !slices.Equal(got, []string{"quiet"}) {
		t.Errorf("some events are left out in %v, want quiet", got)
	}
}
