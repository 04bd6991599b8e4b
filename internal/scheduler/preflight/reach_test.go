// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/manifests"
)

// status answers as an API server does.
func status(code int, reason string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"said so","code":%d}`, reason, code)
	}
}

func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"major":"1","minor":"37","gitVersion":"v1.37.1"}`)
}

// soon bounds a test in which no answer is to come: two tries, instead of many.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), reachEvery+reachEvery/2)
	t.Cleanup(cancel)
	return ctx
}

// What waiting may mend is waited for, and said in a line. What it cannot mend is said at once.
func TestReach(t *testing.T) {
	serve := func(answer http.HandlerFunc) string {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		return server.URL
	}
	secure, gone := httptest.NewTLSServer(http.HandlerFunc(ok)), httptest.NewServer(http.HandlerFunc(ok))
	t.Cleanup(secure.Close)
	gone.Close()
	for name, tc := range map[string]struct {
		master string
		want   string // "" for no error
		waits  bool
	}{
		"it answers": {serve(ok), "", false},
		"it refuses the request, and so has been reached": {serve(status(http.StatusForbidden, "Forbidden")), "", false},
		"it does not accept the credentials":              {serve(status(http.StatusUnauthorized, "Unauthorized")), "does not accept the credentials", false},
		"it is not ready":                                 {serve(status(http.StatusServiceUnavailable, "ServiceUnavailable")), "cannot be reached: the server is currently unable to handle the request", true},
		"it knows no version":                             {serve(http.NotFound), "cannot be reached", true},
		"it is no API server":                             {serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }), "unable to parse the server version", false},
		"it is gone":                                      {gone.URL, "connection refused", true},
		"a certificate that is not known":                 {secure.URL, "certificate", false},
		"a port of another protocol":                      {strings.Replace(secure.URL, "https", "http", 1), "cannot be reached", true},
		"no protocol":                                     {"ftp://127.0.0.1:1", "unsupported protocol scheme", false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			_, err := reach(soon(t), &out, connection{master: tc.master})
			if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.master) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %v, want %q of %s", err, tc.want, tc.master)
			}
			waited := strings.HasPrefix(out.String(), "Waiting up to "+reachFor.String()+" for the API server at "+tc.master)
			if waited != tc.waits || strings.Count(out.String(), "\n") > 1 || !tc.waits && out.Len() > 0 {
				t.Errorf("it printed %q", out.String())
			}
		})
	}
}

// opening opens the server when the first line is printed.
type opening struct{ open *atomic.Bool }

func (o opening) Write(p []byte) (int, error) {
	o.open.Store(true)
	return len(p), nil
}

func TestReachWaits(t *testing.T) {
	var open atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open.Load() {
			status(http.StatusServiceUnavailable, "ServiceUnavailable")(w, r)
			return
		}
		ok(w, r)
	}))
	defer server.Close()
	_, err := reach(t.Context(), opening{&open}, connection{master: server.URL})
	must(t, err)
	if !open.Load() {
		t.Error("it did not say that it waits")
	}
}

// kubeconfig writes one that points at a server.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	must(t, clientcmd.WriteToFile(*config, path))
	return path
}

func TestConnection(t *testing.T) {
	path := kubeconfig(t, "https://127.0.0.1:1")
	broken := filepath.Join(t.TempDir(), "broken")
	must(t, os.WriteFile(broken, []byte("clusters: 5"), 0o600))
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	for _, tc := range []struct {
		name string
		c    connection
		host string
		want string // what the error says
	}{
		{"kubeconfig", connection{kubeconfig: path}, "https://127.0.0.1:1", ""},
		{"the master wins", connection{kubeconfig: path, master: "https://127.0.0.1:2"}, "https://127.0.0.1:2", ""},
		{"a file that is not there", connection{kubeconfig: "/does/not/exist"}, "", `kubeconfig "/does/not/exist"`},
		{"a file that cannot be read", connection{kubeconfig: broken}, "", broken},
		{"nothing", connection{}, "", "cannot find the API server"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			config, err := tc.c.config()
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || config.Host != tc.host {
				t.Errorf("got %v, %v", config, err)
			}
		})
	}
}

func TestPrepareServing(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	must(t, err)
	c := connection{kubeconfig: "/given"}
	err = prepareServing(t.Context(), parsed(t, "--bind-address=127.0.0.1", "--secure-port="+port), c)
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(err.Error(), "--secure-port") {
		t.Errorf("on a port that is taken: %v", err)
	}
	if err := prepareServing(t.Context(), parsed(t, "--bind-address=127.0.0.1", "--secure-port="+port, "--permit-port-sharing"), c); err != nil {
		t.Errorf("on a port that is shared: %v", err)
	}

	must(t, taken.Close())
	flags := parsed(t, "--bind-address=127.0.0.1", "--secure-port="+port, "--authorization-kubeconfig=/mine")
	if err := prepareServing(t.Context(), flags, c); err != nil {
		t.Errorf("on a port that is free: %v", err)
	}
	for name, want := range map[string]string{"authentication-kubeconfig": "/given", "authorization-kubeconfig": "/mine"} {
		if got, _ := flags.GetString(name); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}

	off := parsed(t, "--secure-port=0")
	if err := prepareServing(t.Context(), off, c); err != nil || off.Changed("authentication-kubeconfig") {
		t.Errorf("where nothing is served: %v", err)
	}
}

// Nobody who asks for nothing is told of an error, and who restricts labels of metrics gets that.
func TestRegression_MetricLabels(t *testing.T) {
	manifest := written(t, "a,b: c\n")
	for _, args := range [][]string{nil, {"--allow-metric-labels=a,b=c"}, {"--allow-metric-labels-manifest=" + manifest}} {
		flags := parsed(t, append([]string{"--secure-port=0"}, args...)...)
		must(t, prepareServing(t.Context(), flags, connection{}))
		options := metrics.NewOptions()
		again := pflag.NewFlagSet("upstream", pflag.ContinueOnError)
		options.AddFlags(again)
		flags.Visit(func(f *pflag.Flag) {
			if strings.HasPrefix(f.Name, "allow-metric-labels") {
				must(t, again.Set(f.Name, strings.Trim(f.Value.String(), "[]")))
			}
		})
		for _, err := range options.Validate() {
			t.Errorf("%q: %v", args, err)
		}
		if log := logOf(options.Apply); log != "" {
			t.Errorf("%q logs %s", args, log)
		}
	}
}

// logOf is what something logs.
func logOf(run func()) string {
	defer klog.CaptureState().Restore()
	var log bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	run()
	klog.Flush()
	return log.String()
}

// A plugin for credentials may hang, and heeds no timeout of ours.
func TestAwaitIsNotHeldUp(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	err := await(soon(t), &bytes.Buffer{}, "https://localhost:1", func() error { <-hold; return nil })
	if err == nil || !strings.Contains(err.Error(), "https://localhost:1 cannot be reached: no answer") {
		t.Errorf("the error is %v", err)
	}
}

// A scheduler does as one of the API server's version, unless it is told a version.
func TestEmulate(t *testing.T) {
	for name, tc := range map[string]struct {
		answer       string
		args         []string
		want, prints string
		refused      string
	}{
		"older":             {answer: `{"gitVersion":"v1.35.4+k3s1"}`, want: "[kube=1.35]"},
		"the oldest":        {answer: `{"gitVersion":"v1.34.5"}`, want: "[kube=1.34]"},
		"its own":           {answer: `{"gitVersion":"v1.37.0"}`, want: ""},
		"newer":             {answer: `{"gitVersion":"v1.38.0-beta.0"}`, want: ""},
		"told":              {answer: `{"gitVersion":"v1.35.4"}`, args: []string{"--emulated-version=1.36"}, want: "[1.36]"},
		"told, and too old": {answer: `{"gitVersion":"v1.30.0"}`, args: []string{"--emulated-version=1.34"}, want: "[1.34]"},
		"it does not say":   {answer: `{}`, want: "", prints: "Warning: the API server does not say of which version it is: Kubernetes 1.37 is assumed; give --emulated-version if it is older\n"},
		"too old":           {answer: `{"gitVersion":"v1.33.9"}`, want: "", refused: "it is of Kubernetes 1.33, which is too old"},
		"too new":           {answer: `{"gitVersion":"v1.39.0"}`, want: "", refused: "it is of Kubernetes 1.39, which is too new"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, tc.answer)
			}))
			defer server.Close()
			flags := parsed(t, append([]string{"--secure-port=0", "--master=" + server.URL}, tc.args...)...)
			var out bytes.Buffer
			set := ""
			err := Run(t.Context(), flags, manifests.SchedulerConfig, func() error {
				if flags.Changed(EmulatedVersion) { // the registry of gates, which holds the value, is one for the process
					set = flags.Lookup(EmulatedVersion).Value.String()
				}
				return nil
			}, &out)
			if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("the error is %v, want %q", err, tc.refused)
			}
			if set != tc.want || out.String() != tc.prints {
				t.Errorf("gates are set for %s, want %s; it prints %q, want %q", set, tc.want, out.String(), tc.prints)
			}
		})
	}
}
