// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/espalier-scheduler/espalier/internal/commandtest"
	"github.com/espalier-scheduler/espalier/internal/informersync"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// must ends the test if there is an error.
var must = placementtest.Must

// recording is a manager of a cluster that knows no kinds. It notes what is added.
type recording struct {
	ctrl.Manager
	added []manager.Runnable
}

func (r *recording) Add(is manager.Runnable) error {
	r.added = append(r.added, is)
	return nil
}

func (*recording) GetRESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

func (*recording) GetClient() client.Client { return nil }

func (*recording) GetEventRecorder(string) recorder.EventRecorder { return nil }

// No node is cordoned for its end where no Moves can be made: nobody would empty it.
func TestNoNodeEndsWithoutMoves(t *testing.T) {
	steady := clocktesting.NewFakeClock(time.Now())
	o := &options{lifetimes: lifetimes{pool: "pool=blue"}, informers: informersync.New(steady, informersync.Options{})}
	m := &recording{}
	if !o.moves() {
		t.Fatal("ends ask for no Moves")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	must(t, o.addLifetimes(m))
	if err := o.addMoves(ctx, m); err != nil || len(m.added) > 0 {
		t.Errorf("there are %d controllers, error %v", len(m.added), err)
	}
	if err := o.addStagger(m); err != nil || len(m.added) != 1 {
		t.Errorf("with Moves there are %d, error %v, want one", len(m.added), err)
	}
}

// Allocations keep pods off nodes where the scheduler orders pods by them. The controller knows that by --allocations.
func TestRenewalsGoByAllocations(t *testing.T) {
	for _, tenants := range []bool{false, true} {
		o := &options{schedulers: []string{"espalier-scheduler"}, tenants: tenants}
		o.drain.AtOnce, o.lifetimes.renew = 5, true
		must(t, o.readLifetimes())
		if got := o.lifetimes.renewals.Allocations; got != tenants {
			t.Errorf("with --allocations=%t renewals go by them: %t", tenants, got)
		}
	}
}

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run executes the command, which must end before it needs an API server.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return commandtest.Run(t, newCommand("v1.2.3"), args...)
}

func TestMistakesAreOneLine(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a pod
	for _, tc := range []struct {
		name string
		args []string
		want []string // the error holds them all
	}{
		{"unknown flag", []string{"--kube-config=x"}, []string{"--kube-config"}},
		{"an argument", []string{"start"}, []string{`"start"`}},
		{"no kubeconfig", []string{"--kubeconfig=/does/not/exist"}, []string{"--kubeconfig", "/does/not/exist"}},
		{"no API server", nil, []string{"--kubeconfig", "pod"}},
		{"no schedulers", []string{"--scheduler-names="}, []string{"--scheduler-names"}},
		{"no effect", []string{"--taint-suspects=NoExecute"}, []string{"--taint-suspects", `"NoExecute"`, "NoSchedule"}},
		{"no bound", []string{"--taint-suspects=NoSchedule", "--taint-suspects-at-once=0"}, []string{"--taint-suspects", "0 is no bound", "1 to 1000"}},
		{"no choice of pods", []string{"--move-drained=Some"}, []string{"--move-drained", `"Some"`, "Blocked", "All"}},
		{"no mode", []string{"--rebalance=Maybe"}, []string{"--rebalance", `"Maybe"`, "DryRun, Enabled or ByPolicy"}},
		{"no mode of restarts", []string{"--restart-elsewhere=true"}, []string{"--restart-elsewhere", `"true"`, "Enabled or ByPolicy"}},
		{"an arbiter that nobody reaches", []string{"--arbiter"}, []string{"--arbiter", `""`, "POD_IP"}},
		{"an arbiter at no port", []string{"--arbiter", "--arbiter-address=127.0.0.1", "--arbiter-port=0"}, []string{"--arbiter", "0 is no port", "1 to 65535"}},
		{"no bound of moves", []string{"--move-drained=All", "--moves-at-once=0"}, []string{"--move-drained", "0 is no bound", "1 to 1000"}},
		{"no bound of renewals", []string{"--renew-leases", "--moves-at-once=0"}, []string{"--renew-leases", "0 is no bound", "1 to 1000"}},
		{"no namespaces", []string{"--renew-leases", "--renew-namespace-selector=a in"}, []string{"--renew-namespace-selector", `"a in"`}},
		{"no nodes", []string{"--stagger-ends=a in"}, []string{"--stagger-ends", `"a in"`}},
		{"all nodes", []string{"--stagger-ends= "}, []string{`--stagger-ends " "`, "selects all nodes", "pool=blue"}},
		{"no days", []string{"--stagger-ends=a", "--stagger-ends-schedule=someday"}, []string{"--stagger-ends-schedule", `"someday"`, "mon"}},
		{"no time zone", []string{"--stagger-ends=a", "--stagger-ends-time-zone=Atlantis"}, []string{"--stagger-ends-time-zone", `"Atlantis"`, "Europe/Berlin"}},
		{"no lifetime", []string{"--stagger-ends=a", "--stagger-ends-lifetime=-1h"}, []string{"--stagger-ends", "-1h0m0s is no time", "1h0m0s to"}},
		{"no least time", []string{"--stagger-ends=a", "--stagger-ends-least=999h"}, []string{"--stagger-ends", "999h0m0s is no time", "to 504h0m0s"}},
		{"no time to drain", []string{"--stagger-ends=a", "--stagger-ends-drain-for=0s"}, []string{"--stagger-ends", "0s is no time", "1m0s to 24h0m0s"}},
		{"no nodes at once", []string{"--stagger-ends=a", "--stagger-ends-per-domain=0"}, []string{"--stagger-ends", "0 is no bound", "1 to 1000"}},
		{"moves of ended nodes at once", []string{"--stagger-ends=a", "--moves-at-once=0"}, []string{"0 is no bound", "1 to 1000"}},
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

// To compress what is sent within a cluster takes longer than to send it.
func TestAnswersAreNotCompressed(t *testing.T) {
	o := options{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	cluster := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: "https://127.0.0.1:1"}}, Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}
	must(t, clientcmd.WriteToFile(cluster, o.kubeconfig))
	config, err := o.config()
	if err != nil || !config.DisableCompression {
		t.Errorf("the API server may compress its answers: %+v, %v", config, err)
	}
}

func TestVersionAndHelp(t *testing.T) {
	if out, err := run(t, "--version"); err != nil || !strings.Contains(out, "espalier-controller") || !strings.Contains(out, "v1.2.3") {
		t.Errorf("--version prints %q, %v", out, err)
	}
	out, err := run(t, "--help")
	for _, flag := range []string{"--kubeconfig", "--scheduler-names", "--leader-elect", "--health-probe-bind-address", "--metrics-bind-address"} {
		if err != nil || !strings.Contains(out, flag) {
			t.Errorf("help does not tell of %s: %v", flag, err)
		}
	}
}

// TestOperations wants the pages that have flags of taints, moves and the arbiter to have their defaults.
func TestOperations(t *testing.T) {
	var rows [][]string
	for _, name := range []string{"operations.md", "moves.md", "lifetimes.md", "several-schedulers.md"} {
		page, err := os.ReadFile("../../docs/" + name)
		must(t, err)
		rows = append(rows, regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| (none|`([^`]+)`) \\|").FindAllStringSubmatch(string(page), -1)...)
	}
	if len(rows) < 14 {
		t.Fatalf("it has the rows %q: there are more", rows)
	}
	flags := newCommand("test").Flags()
	for _, row := range rows {
		if f := flags.Lookup(row[1]); f == nil || f.DefValue != row[3] {
			t.Errorf("it says that --%s is %q by default; the flag is %+v", row[1], row[3], f)
		}
	}
}

var update = flag.Bool("update", false, "write the page of the flags anew")

// docs/reference/controller.md has all flags: `go test ./cmd/controller -run Reference -update` writes it.
func TestReference(t *testing.T) {
	text := "# Flags of espalier-controller\n\nAfter reading this page you know every flag of the controller. With the chart you set them by `controller.extraArgs`.\n\n" +
		commandtest.Reference(newCommand("v0.0.0").Flags())
	commandtest.WantPage(t, "../../docs/reference/controller.md", text, *update)
}
