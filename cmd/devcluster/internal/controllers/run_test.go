// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/pki"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// Half a control plane only makes tests hang.
func TestEndOfAController(t *testing.T) {
	for name, tc := range map[string]struct {
		loop func(ctx context.Context, end context.CancelFunc)
		want string
	}{
		"when asked to": {func(ctx context.Context, end context.CancelFunc) { end(); <-ctx.Done() }, ""},
		"by itself":     {func(context.Context, context.CancelFunc) {}, "daemonset-controller ended by itself"},
		"with a panic":  {func(context.Context, context.CancelFunc) { panic("oh") }, "daemonset-controller panicked: oh"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			got := ""
			if err := until(ctx, names.DaemonSetController, func(ctx context.Context) { tc.loop(ctx, end) }); err != nil {
				got, _, _ = strings.Cut(err.Error(), "\n") // the stack
			}
			if got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

// All can be made, and have ended when Run returns. One that cannot be made is named: the first that asks the API server for something
// on its way is that of quotas.
func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds map[string]string // what is answered to who asks for them
		want  string
	}{
		"of an API server with one kind": {map[string]string{
			"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/apis": `{"kind":"APIGroupList","apiVersion":"v1"}`,
			"/api/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1",
				"resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["create","delete","list","watch"]}]}`,
		}, ""},
		"of an API server that is broken": {nil, "starting " + names.ResourceQuotaController + ": "},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if tc.kinds[r.URL.Path] == "" {
					w.WriteHeader(http.StatusInternalServerError)
				}
				_, _ = w.Write([]byte(tc.kinds[r.URL.Path]))
			}))
			defer server.Close()
			dir := t.TempDir()
			keys, err := pki.Ensure(filepath.Join(dir, "pki"), net.IPv4(10, 96, 0, 1))
			must(t, err)
			kubeconfig := filepath.Join(dir, "kubeconfig")
			must(t, keys.WriteKubeconfig(kubeconfig, "controllers", server.URL))
			config, err := Configuration(kubeconfig, keys, 20*time.Second)
			must(t, err)
			for range 2 { // a restart is a second run in the same process
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				err = Run(ctx, config)
				if tc.want == "" && (err != nil || ctx.Err() == nil) {
					t.Errorf("it ended with %v, want nothing, and not before it was asked to", err)
				}
				if tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
					t.Errorf("it ended with %v, want %s...", err, tc.want)
				}
				cancel()
			}
		})
	}
}

// must ends the test if there is an error.
var must = placementtest.Must
