// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// invoke runs the command to its end and returns its exit status and what it printed, line by line.
func invoke(t *testing.T, args ...string) (status int, lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, cluster.binary, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%q did not end within %s; it printed:\n%s", args, timeout, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return cmd.ProcessState.ExitCode(), lines
}

// logged is a line of the log, which kube-scheduler's libraries write before the command knows that it fails.
var logged = regexp.MustCompile(`^[IWE]\d{4} `)

// refuses wants a status that is not 0 and, beside the log, one line that names
// everything wanted. Before it the command may say that it waits.
func refuses(t *testing.T, args, want []string) {
	t.Helper()
	status, lines := invoke(t, args...)
	if status <= 0 {
		t.Errorf("exit status %d, want a failure", status)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return logged.MatchString(line) || strings.HasPrefix(line, "Waiting up to ")
	})
	if len(lines) != 1 {
		t.Fatalf("want one line, got %d:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for _, w := range want {
		if !strings.Contains(lines[0], w) {
			t.Errorf("the line does not name %q: %s", w, lines[0])
		}
	}
}

const configHead = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// withArgs is a configuration with arguments for one of our plugins, in flow style.
func withArgs(plugin, args string) string {
	return configHead + fmt.Sprintf(`profiles:
- schedulerName: test
  plugins: {multiPoint: {enabled: [{name: Preferences}, {name: SpreadTree}]}}
  pluginConfig:
  - name: %s
    args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: %sArgs, %s}
`, plugin, plugin, args)
}

func TestRefusesConfiguration(t *testing.T) {
	tests := map[string]struct {
		content string
		want    []string
	}{
		"no YAML":            {"profiles: [", []string{"config.yaml"}},
		"another kind":       {"apiVersion: v1\nkind: Pod\n", []string{"Pod"}},
		"unknown field":      {configHead + "profils: []\n", []string{`"profils"`}},
		"bad value":          {configHead + "parallelism: -1\n", []string{"parallelism", "-1"}},
		"unknown plugin":     {configHead + "profiles: [{schedulerName: a, plugins: {multiPoint: {enabled: [{name: SpreadThree}]}}}]\n", []string{"SpreadThree"}},
		"unknown argument":   {withArgs("SpreadTree", "countRevision: All"), []string{`"countRevision"`}},
		"bad argument":       {withArgs("SpreadTree", "countRevisions: Some"), []string{"countRevisions", `"Some"`, "Newest", "All"}},
		"bad duration":       {withArgs("FaultyNode", "windowSeconds: -1"), []string{"windowSeconds", "-1"}},
		"argument of a type": {withArgs("FaultyNode", "windowSeconds: [1]"), []string{"windowSeconds"}},
		"bad level":          {withArgs("Preferences", "defaultLevels: [{topologyKey: zone}, {topologyKey: engine.name}]"), []string{"defaultLevels[1].topologyKey", "engine.name"}},
		"bad strategy":       {withArgs("Preferences", "defaultLevels: [{topologyKey: zone, strategy: Sprad}]"), []string{"defaultLevels[0].strategy", "Sprad", "Spread", "Pack"}},
		"bad share":          {withArgs("Preferences", "defaultLevels: [{topologyKey: zone, shares: [{value: a, share: 0}]}]"), []string{"defaultLevels[0].shares", "0"}},
		"level twice":        {withArgs("Preferences", "defaultLevels: [{topologyKey: zone}, {topologyKey: zone}]"), []string{"defaultLevels[1]", "zone"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := write(t, "config.yaml", tc.content)
			refuses(t, []string{"--config=" + config, "--kubeconfig=" + cluster.admin, "--secure-port=0", "--leader-elect=false"}, tc.want)
		})
	}
}

func TestRefusesFlags(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// This one's clients are hung up on: nobody serves it.
	taken := listener.Addr().String()
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ := net.SplitHostPort(taken)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()

	// Each command tries its port before it asks the API server, and two that run at once would find the usual one taken.
	const noPort = "--secure-port=0"
	tests := map[string]struct {
		args []string
		want []string
	}{
		"no such configuration": {[]string{"--config=/no/such/config.yaml", "--kubeconfig=" + cluster.admin, noPort}, []string{"/no/such/config.yaml"}},
		"no such kubeconfig":    {[]string{"--kubeconfig=/no/such/kubeconfig", noPort}, []string{"/no/such/kubeconfig"}},
		"no kubeconfig at all":  {[]string{noPort}, []string{"--kubeconfig"}},
		"unreachable":           {[]string{"--kubeconfig=" + kubeconfig(t, "https://"+nobody, ""), noPort}, []string{nobody}},
		"stranger":              {[]string{"--kubeconfig=" + kubeconfig(t, cluster.config.Host, "no-token"), noPort}, []string{cluster.config.Host, "credentials"}},
		"taken port":            {[]string{"--kubeconfig=" + cluster.admin, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=" + port}, []string{port}},
		"port out of range":     {[]string{"--kubeconfig=" + cluster.admin, "--secure-port=70000"}, []string{"70000", "secure-port"}},
		"bad flag value":        {[]string{"--kube-api-qps=fast"}, []string{"kube-api-qps", "fast"}},
		"unknown flag":          {[]string{"--levels=zone"}, []string{"--levels"}},
		"an argument":           {[]string{"start"}, []string{"start"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses(t, tc.args, tc.want)
		})
	}
}

// kubeconfig is one with a token, for a server whose certificate nobody checks.
func kubeconfig(t *testing.T, server, token string) string {
	t.Helper()
	return write(t, "kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: %q}}]
`, server, token))
}

// A refusal waits for nobody where nothing has to be waited for, such as an API server that never answers.
func TestRefusesAtOnce(t *testing.T) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	refuses(t, []string{"--config=/no/such/config.yaml", "--kubeconfig=" + kubeconfig(t, "https://"+silent.Addr().String(), "token")}, []string{"/no/such/config.yaml"})
}

func TestVersionAndHelp(t *testing.T) {
	if status, lines := invoke(t, "--version"); status != 0 || len(lines) != 1 || !strings.HasPrefix(lines[0], "espalier-scheduler ") {
		t.Errorf("--version: status %d, %q", status, lines)
	}
	status, lines := invoke(t, "--help")
	help := strings.Join(lines, "\n")
	for _, flag := range []string{"--config", "--kubeconfig", "--leader-elect", "--kube-api-qps", "--kube-api-burst", "--secure-port", "--bind-address", "--v", "--write-config-to"} {
		if status != 0 || !strings.Contains(help, flag+" ") {
			t.Errorf("--help: status %d, and it does not tell of %s", status, flag)
		}
	}
}
