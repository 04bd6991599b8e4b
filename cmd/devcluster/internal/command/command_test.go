// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/kwok"
)

// run gives the arguments to a fresh command line; none of these may start anything.
func run(args ...string) (string, error) {
	var out bytes.Buffer
	root := newRoot(&out, &out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

func TestBadInputIsNamed(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	missing := filepath.Join(t.TempDir(), "missing")
	list := filepath.Join(t.TempDir(), "pods.yaml")
	if err := os.WriteFile(list, []byte("kind: Pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"up", "--nodes", "-3"}, "--nodes=-3"},
		{[]string{"up", "--nodes", "many"}, "--nodes"},
		{[]string{"up", "--node-memory", "much"}, `--node-memory="much"`},
		{[]string{"up", "--node-grace", "1s"}, "--node-grace=1s"},
		{[]string{"up", "--nodes-file", missing}, missing},
		{[]string{"up", "--nodes-file", list}, list + `: document 1: kind: "Pod"`},
		{[]string{"up", "--nodes-file", list, "--zones", "2"}, "--zones and --nodes-file"},
		{[]string{"up", "--bare", "--nodes", "3"}, "--nodes and --bare"},
		{[]string{"up", "more"}, `"more"`},
		{[]string{"bogus"}, `"bogus"`},
		{[]string{"fail"}, "the names of nodes"},
		{[]string{"fail", "node-001", "--nodes", "a=b"}, `--nodes="a=b"`},
		{[]string{"fail", "node-001"}, "--kubeconfig"},
		{[]string{"heal", "node-001", "--kubeconfig", missing}, missing},
	} {
		_, err := run(c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("devcluster %s: error %v, want one with %s", strings.Join(c.args, " "), err, c.want)
		}
	}
}

func TestHelpNamesEveryFailure(t *testing.T) {
	out, err := run("fail", "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kwok.FailureKinds() {
		if !strings.Contains(out, kind.Name) || !strings.Contains(out, kind.Help) {
			t.Errorf("help does not explain %q", kind.Name)
		}
	}
}

func TestVersion(t *testing.T) {
	out, err := run("version")
	if err != nil || !strings.Contains(out, "kubernetes ") {
		t.Errorf("%q, %v", out, err)
	}
}

// Orders are passed on one after the other; what is none is quoted, and ends nothing.
func TestOrders(t *testing.T) {
	restart := make(chan string, 8)
	var complaints bytes.Buffer
	(&upFlags{}).takeOrders(t.Context(), strings.NewReader("restart etcd\nreboot\n\nrestart kubelet\n"+strings.Repeat("restart", 99999)+"\nrestart kube-apiserver\nrestart kube-controller-manager"), &complaints, restart)
	close(restart)
	if got, want := slices.Collect(values(restart)), []string{"etcd", "kube-apiserver", "kube-controller-manager"}; !slices.Equal(got, want) {
		t.Errorf("to restart are %v, want %v", got, want)
	}
	for _, want := range []string{`"reboot" is no order`, `"" is no order`, `"kubelet" cannot be restarted: the parts that can are etcd, kube-apiserver, kube-controller-manager`, `restartrest" is no order`} {
		if !strings.Contains(complaints.String(), want) {
			t.Errorf("it does not say %s: %s", want, complaints.String())
		}
	}
}

// A bare cluster has no controllers, and goes on when they are to be restarted.
func TestOrdersOfABareCluster(t *testing.T) {
	restart := make(chan string, 1)
	var complaints bytes.Buffer
	(&upFlags{bare: true}).takeOrders(t.Context(), strings.NewReader("restart kube-controller-manager\n"), &complaints, restart)
	if want := "the parts that can are etcd, kube-apiserver\n"; len(restart) > 0 || !strings.HasSuffix(complaints.String(), want) {
		t.Errorf("%d are to be restarted, and it says %q, want %q", len(restart), complaints.String(), want)
	}
}

// A command finds the cluster by KUBECONFIG, and its status is that of devcluster.
func TestBeside(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := beside(t.Context(), &stdout, &stderr, "/the/kubeconfig", []string{"sh", "-c", "echo $KUBECONFIG $0; echo wrong >&2; exit 3", "given"})
	if stdout.String() != "/the/kubeconfig given\n" || stderr.String() != "wrong\n" || status(err) != 3 {
		t.Errorf("it prints %q and says %q, with the status %d: %v", stdout.String(), stderr.String(), status(err), err)
	}
	if err := beside(t.Context(), &stdout, &stderr, "", []string{"true"}); err != nil {
		t.Errorf("a command that ends well: %v", err)
	}
	if err := beside(t.Context(), &stdout, &stderr, "", []string{"/no/such/command"}); err == nil || status(err) != 1 {
		t.Errorf("a command that is not there: %v", err)
	}
}

// writer writes by a function.
type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// What a command has started ends with it, though interrupts are ignored, as in a script's background: a shell alone would wait for that, and then go on.
func TestBesideIsTerminated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var stdout bytes.Buffer
	begin := time.Now()
	err := beside(ctx, writer(func(p []byte) (int, error) {
		cancel()
		return stdout.Write(p)
	}), io.Discard, "", []string{"sh", "-c", "trap '' INT; echo begun; sh -c 'sleep 60'; echo it went on"})
	if err == nil || stdout.String() != "begun\n" || time.Since(begin) >= endLimit {
		t.Errorf("after %s it has printed %q: %v", time.Since(begin), stdout.String(), err)
	}
}

func values(from <-chan string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for v := range from {
			if !yield(v) {
				return
			}
		}
	}
}
