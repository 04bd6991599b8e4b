// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// startController starts the controller with the rights of the manifests, or with another kubeconfig.
func startController(t *testing.T, kubeconfig string, args ...string) *rig.Process {
	t.Helper()
	binary, err := rig.Binary(rig.ControllerName, binFolder)
	if err != nil {
		t.Fatal(err)
	}
	if kubeconfig == "" {
		kubeconfig = controllerKubeconfig(t)
	}
	p, err := rig.Start(rig.Command{
		Name: rig.ControllerName, Path: binary, Dir: t.TempDir(), Args: append(args, "--kubeconfig="+kubeconfig, "--health-probe-bind-address=0"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// controllerKubeconfig is that of the controller's account.
func controllerKubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "controller.kubeconfig")
	if err := rig.WriteKubeconfig(t.Context(), cluster.config, cluster.client, rig.ControllerName, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// The controller serves its metrics by TLS, and to whom the cluster lets read them: a replica that stands by does, too.
func TestControllerServesMetrics(t *testing.T) {
	ns, port := namespace(t), freePort(t)
	startController(t, "", "--metrics-bind-address=127.0.0.1:"+port)
	url := "https://127.0.0.1:" + port + "/metrics"
	stranger := readerToken(t, ns, "stranger")
	for _, tc := range []struct {
		who, url, token string
		want            int
	}{
		{"who may read them", url, metricsToken(t, ns), http.StatusOK},
		{"nobody", url, "", http.StatusUnauthorized},
		{"a token that nobody has given out", url, "x" + stranger, http.StatusInternalServerError}, // as controller-runtime has it
		{"an account without the right", url, stranger, http.StatusForbidden},
		{"one who asks in the clear", strings.Replace(url, "https", "http", 1), "", http.StatusBadRequest},
	} {
		until(t, "the metrics, for "+tc.who, func() error {
			status, body, err := get(t, tc.url, tc.token)
			if err == nil && status != tc.want {
				t.Fatalf("for %s: status %d, want %d: %.200s", tc.who, status, tc.want, body)
			}
			if err == nil && status == http.StatusOK && !strings.Contains(body, "leader_election_master_status") {
				err = errors.New("it is not said who leads")
			}
			return err
		})
	}
}
