// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// serve starts the scheduler with the rights of the manifests, and returns it with the address that it serves on.
func serve(t *testing.T, args ...string) (p *rig.Process, base string) {
	t.Helper()
	return serveBy(t, cluster.account, args...)
}

// serveBy starts it with another kubeconfig for all but what it asks about those who ask it.
func serveBy(t *testing.T, kubeconfig string, args ...string) (p *rig.Process, base string) {
	t.Helper()
	port := freePort(t)
	// In a pod the last two find the pod's own credentials.
	p = start(t, append(args, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+port,
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+cluster.account, "--authorization-kubeconfig="+cluster.account)...)
	return p, "https://127.0.0.1:" + port
}

var hintLine = regexp.MustCompile(`(?m)^espalier_hints_total\{outcome="(\w+)",profile="espalier-scheduler"\} (\d+)$`)

// hintCounts reads how many pods had which outcome.
func hintCounts(t *testing.T, base, token string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	until(t, "the scheduler's metrics", func() error {
		status, body, err := rig.Get(t.Context(), base+"/metrics", token)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		for _, m := range hintLine.FindAllStringSubmatch(body, -1) {
			if n, _ := strconv.Atoi(m[2]); n > 0 { // all are shown from the start
				counts[m[1]] = n
			}
		}
		return err
	})
	return counts
}

// The shipped profile places ordinary pods by hints, each of which is taken, and evenly.
func TestRunsTheShippedProfile(t *testing.T) {
	rig.Since(t, cluster.client, rig.HintsSince, "the fast path")
	p, base := serve(t)
	ns := namespace(t)
	pods(t, ns, rig.SchedulerName, 13)
	even(t, settled(t, ns, rig.SchedulerName, 13))
	if got := hintCounts(t, base, metricsToken(t, ns)); got["proposed"] != 13 || got["used"] != 13 || len(got) != 2 {
		t.Errorf("of 13 pods these had a hint, and took it: %v", got)
	}
	// An error that every start logs is one that nobody reads when it matters.
	for _, line := range strings.Split(p.Tail(1000), "\n") {
		if wrong.MatchString(line) {
			t.Errorf("it logged %s", line)
		}
	}
	stop(t, p)
}

// Without the feature gate the scheduler says in one line that there are no hints, and spreads without.
func TestHintsWithoutTheirGate(t *testing.T) {
	rig.Since(t, cluster.client, rig.HintsSince, "the gate of the fast path")
	ns := namespace(t)
	p, base := serve(t, "--feature-gates=OpportunisticBatching=false")
	pods(t, ns, rig.SchedulerName, 7)
	even(t, settled(t, ns, rig.SchedulerName, 7))
	if got := hintCounts(t, base, metricsToken(t, ns)); len(got) != 0 {
		t.Errorf("there were hints: %v", got)
	}
	const want = `Warning: profile "espalier-scheduler": fast path disabled`
	if log := p.Tail(1000); strings.Count(log, want) != 1 {
		t.Errorf("%q is not one line of its log:\n%s", want, log)
	}
}

// wrong is an error in the log.
var wrong = regexp.MustCompile(`^E\d{4} `)

// A restart forgets nothing: what runs is counted from the API.
func TestRestart(t *testing.T) {
	ns := namespace(t)
	for total := 4; total <= 16; total += 4 {
		p := start(t, "--kubeconfig="+cluster.account, "--leader-elect=false", "--secure-port=0")
		pods(t, ns, rig.SchedulerName, 4)
		even(t, settled(t, ns, rig.SchedulerName, total))
		stop(t, p)
	}
}

const foreignConfig = configHead + `
clientConnection: {qps: 50, burst: 100}
leaderElection: {leaderElect: false}
profiles:
- schedulerName: plain
- schedulerName: ours
  plugins: {multiPoint: {enabled: [{name: Preferences}, {name: SpreadTree, weight: 10000}]}}
`

// With --config it is whatever the file says: here two profiles, one of them the stock scheduler's, and none with the shipped name.
func TestRunsAForeignConfiguration(t *testing.T) {
	start(t, "--config="+write(t, "config.yaml", foreignConfig), "--kubeconfig="+cluster.admin, "--secure-port=0")
	ns := namespace(t)
	pods(t, ns, rig.SchedulerName, 1)
	pods(t, ns, "plain", 3)
	pods(t, ns, "ours", 7)
	settled(t, ns, "plain", 3)
	settled(t, ns, "ours", 7)
	o, err := rig.Observe(t.Context(), cluster.client, rig.Workload{Namespace: ns, Selector: "scheduler=" + rig.SchedulerName})
	fatal(t, err)
	if o.Pending != 1 {
		t.Error("a pod of the shipped name was placed by a scheduler that does not have this name")
	}
}

// --write-config-to writes what runs, and what it wrote can be run.
func TestWritesItsConfiguration(t *testing.T) {
	written := filepath.Join(t.TempDir(), "written.yaml")
	status, lines := invoke(t, "--kubeconfig="+cluster.admin, "--write-config-to="+written)
	if status != 0 {
		t.Fatalf("exit status %d: %q", status, lines)
	}
	content, err := os.ReadFile(written)
	fatal(t, err)
	want, got := profileNames(t, manifests.SchedulerConfig), profileNames(t, content)
	if len(got) != 1 || got[0] != want[0] {
		t.Errorf("it wrote the profiles %v, want %v", got, want)
	}
	for _, text := range []string{"name: SpreadTree", "weight: 10000", "countRevisions: Newest", "qps: 500"} {
		if !bytes.Contains(content, []byte(text)) {
			t.Errorf("%q is not in what it wrote:\n%s", text, content)
		}
	}
	start(t, "--config="+written, "--leader-elect=false", "--secure-port=0")
	ns := namespace(t)
	pods(t, ns, rig.SchedulerName, 4)
	even(t, settled(t, ns, rig.SchedulerName, 4))
}

func profileNames(t *testing.T, config []byte) []string {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(config)
	fatal(t, err)
	var parsed struct {
		Profiles []struct{ SchedulerName string }
	}
	fatal(t, json.Unmarshal(asJSON, &parsed))
	var names []string
	for _, p := range parsed.Profiles {
		names = append(names, p.SchedulerName)
	}
	return names
}

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

// refuses wants a status that is not 0 and, beside the log, one line that names everything wanted.
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

// A scheduler emulates the version of its API server, and ends with a message when the API server is of an older one. Started again it is right.
func TestFollowsTheVersionOfTheAPIServer(t *testing.T) {
	var minor atomic.Int32
	minor.Store(36)
	server := before(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/version" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"major": "1", "minor": "%d"}`, minor.Load())
		return true
	})
	for _, tc := range []struct {
		is     int32
		elects string
		status int
	}{
		{36, "true", 0}, // kube-scheduler's own, when a leader ends
		{36, "false", 1},
		{35, "false", 0},
	} {
		is := tc.is
		minor.Store(is)
		ns := namespace(t)
		p, err := rig.Start(rig.Command{
			Name: "espalier-scheduler", Path: cluster.binary, Dir: t.TempDir(),
			Args: []string{
				"--leader-elect=" + tc.elects, "--leader-elect-resource-name=version", "--secure-port=0", "--kubeconfig=" + kubeconfig(t, server, "none"), "--v=1",
			},
		})
		fatal(t, err)
		t.Cleanup(p.Kill)
		pods(t, ns, rig.SchedulerName, 13)
		even(t, settled(t, ns, rig.SchedulerName, 13))
		if flag := fmt.Sprintf(`--emulated-version="[kube=1.%d]"`, is); !strings.Contains(p.Tail(1000), flag) {
			t.Errorf("it does not run with %s", flag)
		}
		if is == 35 {
			continue
		}
		minor.Store(35)
		select {
		case <-p.Done():
		case <-time.After(timeout):
			t.Fatal("it goes on with an API server that is older than what it emulates")
		}
		const want = "the API server is of Kubernetes 1.35 now, and this scheduler runs as one of 1.36"
		if log := p.Tail(5); p.ExitCode() != tc.status || !strings.Contains(log, want) {
			t.Errorf("it ended with exit status %d and without %q:\n%s", p.ExitCode(), want, log)
		}
	}
}

// before is the address of a proxy before the API server, with the rights of an administrator. Answers reports whether it has answered a
// request itself.
func before(t *testing.T, answers func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	target, err := url.Parse(cluster.config.Host)
	fatal(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1 // watches
	if proxy.Transport, err = rest.TransportFor(cluster.config); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers(w, r) {
			return
		}
		r.Header.Del("Authorization") // the proxy has its own
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return server.URL
}
