// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

var quickElection = []string{"--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=1s"}

// With the rights of the manifests it takes the Lease of its own name and no other, and of two only the holder schedules, until it dies.
func TestTakesItsOwnLease(t *testing.T) {
	// An earlier run may have left it with a holder that is gone.
	err := cluster.client.CoordinationV1().Leases("kube-system").Delete(t.Context(), "espalier-scheduler", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	args := append([]string{"--kubeconfig=" + cluster.account, "--secure-port=0", "-v=2"}, quickElection...)
	first := start(t, args...)
	holder := leaseHolder(t, "")
	second := start(t, args...)
	logs(t, second, "Attempting to acquire leader lease") // it knows the cluster
	ns := namespace(t)
	pods(t, ns, rig.SchedulerName, 3)
	settled(t, ns, rig.SchedulerName, 3)
	until(t, "somebody to say that it has bound three pods", func() error {
		if n := bindings(t, first) + bindings(t, second); n < 3 {
			return fmt.Errorf("it was said of %d", n)
		}
		return nil
	})
	if got := leaseHolder(t, ""); got != holder {
		t.Errorf("the Lease went from %q to %q, though its holder lives", holder, got)
	}
	leases, err := cluster.client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{})
	fatal(t, err)
	for _, l := range leases.Items {
		if l.Name == "kube-scheduler" {
			t.Error("it took kube-scheduler's Lease")
		}
	}
	if n := bindings(t, second); n != 0 {
		t.Errorf("the one without the Lease has bound %d of 3 pods", n)
	}
	first.Kill()
	leaseHolder(t, holder)
	pods(t, ns, rig.SchedulerName, 3)
	even(t, settled(t, ns, rig.SchedulerName, 6))
	select {
	case <-second.Done():
		t.Error(second.Err())
	default:
	}
}

// bindings is how many pods a scheduler has bound, by its log at -v=2.
func bindings(t *testing.T, scheduler *rig.Process) int {
	t.Helper()
	return strings.Count(logOf(t, scheduler), "Successfully bound pod")
}

func logOf(t *testing.T, p *rig.Process) string {
	t.Helper()
	text, err := os.ReadFile(p.Log)
	fatal(t, err)
	return string(text)
}

// logs waits until the log of a process has a text.
func logs(t *testing.T, p *rig.Process, text string) {
	t.Helper()
	until(t, fmt.Sprintf("the log of %s to say %q", p.Name, text), func() error {
		if !strings.Contains(logOf(t, p), text) {
			return errors.New("it does not")
		}
		return nil
	})
}

// leaseHolder waits until the Lease has a holder other than the given one.
func leaseHolder(t *testing.T, other string) (holder string) {
	t.Helper()
	until(t, "a new holder of the Lease", func() (err error) {
		holder, err = rig.Holder(t.Context(), cluster.client, other)
		return err
	})
	return holder
}

// metricsToken is one of a service account that may read /metrics and nothing else.
func metricsToken(t *testing.T, ns string) string {
	t.Helper()
	return readerToken(t, ns, "metrics", "/metrics")
}

// readerToken is one of a service account that may read these paths and nothing else.
func readerToken(t *testing.T, ns, name string, paths ...string) string {
	t.Helper()
	token, err := rig.ReaderToken(t.Context(), cluster.client, ns, name+"-"+ns, paths...)
	fatal(t, err)
	return token
}

// freePort is a port for a scheduler to serve on.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := rig.FreePort()
	fatal(t, err)
	return port
}

// answers wants who asks for an address with a token to be answered with a status, the first time that anything is.
func answers(t *testing.T, url, token string, want int) {
	t.Helper()
	until(t, url, func() error {
		status, got, err := rig.Get(t.Context(), url, token)
		if err == nil && status != want {
			t.Fatalf("%s: status %d, want %d: %.200s", url, status, want, got)
		}
		return err
	})
}

// With the rights of the manifests it serves its health to everybody, and whatever else it serves to those whom the cluster lets read it: nobody,
// an account without the right and a token that nobody has given out get nothing, and who may read one path gets that and no other.
func TestServesHealthAndMetrics(t *testing.T) {
	_, base := serve(t)
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		until(t, path, func() error {
			status, body, err := rig.Get(t.Context(), base+path, "")
			if err == nil && (status != http.StatusOK || strings.TrimSpace(body) != "ok") {
				err = fmt.Errorf("status %d: %s", status, body)
			}
			return err
		})
	}
	ns := namespace(t)
	pods(t, ns, rig.SchedulerName, 2)
	settled(t, ns, rig.SchedulerName, 2)
	token := metricsToken(t, ns)
	const want = `scheduler_schedule_attempts_total{profile="espalier-scheduler",result="scheduled"}`
	says(t, base+"/metrics", token, http.StatusOK, want)

	stranger := readerToken(t, ns, "stranger")
	for i, path := range []string{
		"/metrics", "/metrics/slis", "/metrics/resources", "/configz", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/flags/v", "/flagz", "/statusz",
	} {
		t.Run(path, func(t *testing.T) {
			answers(t, base+path, "", http.StatusForbidden)
			answers(t, base+path, stranger, http.StatusForbidden)
			answers(t, base+path, "x"+stranger, http.StatusUnauthorized)
			token := readerToken(t, ns, fmt.Sprintf("reader-%d", i), path)
			until(t, path+" for who may read it", func() error {
				status, body, err := rig.Get(t.Context(), base+path, token)
				// The level of logging is written there, not read; what is off is not there, for nobody.
				if err == nil && (status == http.StatusForbidden || status == http.StatusUnauthorized) {
					err = fmt.Errorf("status %d: %.200s", status, body)
				}
				return err
			})
			other := "/metrics"
			if path == other {
				other = "/configz"
			}
			answers(t, base+other, token, http.StatusForbidden)
		})
	}
}

// startController starts the controller with the rights of the manifests, or with another kubeconfig.
func startController(t *testing.T, kubeconfig string, args ...string) *rig.Process {
	t.Helper()
	binary, err := rig.Binary(rig.ControllerName, binFolder)
	fatal(t, err)
	if kubeconfig == "" {
		kubeconfig = controllerKubeconfig(t)
	}
	p, err := rig.Start(rig.Command{
		Name: rig.ControllerName, Path: binary, Dir: t.TempDir(), Args: append([]string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0"}, args...),
	})
	fatal(t, err)
	t.Cleanup(p.Kill)
	return p
}

// controllerKubeconfig is that of the controller's account.
func controllerKubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "controller.kubeconfig")
	fatal(t, rig.WriteKubeconfig(t.Context(), cluster.config, cluster.client, rig.ControllerName, path))
	return path
}

// The controller serves its metrics by TLS, and to whom the cluster lets read them: a replica that stands by does, too.
func TestControllerServesMetrics(t *testing.T) {
	ns, port := namespace(t), freePort(t)
	startController(t, "", "--metrics-bind-address=127.0.0.1:"+port)
	url := "https://127.0.0.1:" + port + "/metrics"
	stranger := readerToken(t, ns, "stranger")
	token := metricsToken(t, ns)
	answers(t, url, token, http.StatusOK)
	says(t, url, token, http.StatusOK, "leader_election_master_status")
	answers(t, url, "", http.StatusUnauthorized)
	answers(t, url, "x"+stranger, http.StatusInternalServerError) // of a token that nobody has given out, as controller-runtime has it
	answers(t, url, stranger, http.StatusForbidden)
	answers(t, strings.Replace(url, "https", "http", 1), "", http.StatusBadRequest)
}
