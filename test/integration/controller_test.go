// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
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
	token := metricsToken(t, ns)
	until(t, "who leads to be said", func() error {
		if body := answers(t, url, token, http.StatusOK); !strings.Contains(body, "leader_election_master_status") {
			return fmt.Errorf("it is not: %.200s", body)
		}
		return nil
	})
	answers(t, url, "", http.StatusUnauthorized)
	answers(t, url, "x"+stranger, http.StatusInternalServerError) // of a token that nobody has given out, as controller-runtime has it
	answers(t, url, stranger, http.StatusForbidden)
	answers(t, strings.Replace(url, "https", "http", 1), "", http.StatusBadRequest)
}
