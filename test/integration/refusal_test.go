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
// everything wanted.
func refuses(t *testing.T, args, want []string) {
	t.Helper()
	status, lines := invoke(t, args...)
	if status <= 0 {
		t.Errorf("exit status %d, want a failure", status)
	}
	lines = slices.DeleteFunc(lines, logged.MatchString)
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

// What the command refuses it says in one line, and ends with another status than 0: what is wrong with its configuration, by whoever of its
// layers finds it, with its flags, and with its way to the API server. What each layer refuses is tested beside it.
func TestRefuses(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fatal(t, err)
	// Nobody serves it: who connects is never answered.
	taken := listener.Addr().String()
	t.Cleanup(func() { _ = listener.Close() })
	_, port, _ := net.SplitHostPort(taken)
	config := func(content string) string { return "--config=" + write(t, "config.yaml", content) }
	profile := func(plugin, args string) string {
		return configHead + "profiles: [{schedulerName: a, plugins: {multiPoint: {enabled: [{name: Preferences}, {name: " + plugin + "}]}}, pluginConfig: [" + args + "]}]\n"
	}

	// Each command tries its port before it asks the API server, and two that run at once would find the usual one taken.
	const noPort = "--secure-port=0"
	admin := "--kubeconfig=" + cluster.admin
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"unknown field":  {[]string{config(configHead + "profils: []\n"), admin, noPort}, []string{`"profils"`}},
		"bad value":      {[]string{config(configHead + "parallelism: -1\n"), admin, noPort}, []string{"parallelism", "-1"}},
		"unknown plugin": {[]string{config(profile("SpreadThree", "")), admin, noPort}, []string{"SpreadThree"}},
		"bad argument": {
			[]string{config(profile("SpreadTree", "{name: SpreadTree, args: {countRevisions: Some}}")), admin, noPort},
			[]string{"profiles[0].pluginConfig[0].args.countRevisions", `"Some"`, "Newest", "All"},
		},
		"bad flag value":    {[]string{"--kube-api-qps=fast"}, []string{"kube-api-qps", "fast"}},
		"port out of range": {[]string{admin, "--secure-port=70000"}, []string{"70000", "secure-port"}},
		"taken port":        {[]string{admin, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port=" + port}, []string{port}},
		"stranger":          {[]string{"--kubeconfig=" + kubeconfig(t, cluster.config.Host, "no-token"), noPort}, []string{cluster.config.Host, "credentials"}},
		// It waits for nobody where nothing has to be waited for, such as an API server that never answers.
		"no such configuration": {[]string{"--config=/no/such/config.yaml", "--kubeconfig=" + kubeconfig(t, "https://"+taken, "token"), noPort}, []string{"/no/such/config.yaml"}},
	} {
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
