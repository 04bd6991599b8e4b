// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

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
