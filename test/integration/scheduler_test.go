// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// start starts the scheduler with these arguments and nothing else, and ends it with the test. By itself it must not end.
func start(t *testing.T, args ...string) *rig.Process {
	t.Helper()
	p, err := rig.Start(rig.Command{Name: "espalier-scheduler", Path: cluster.binary, Args: args, Dir: t.TempDir()})
	fatal(t, err)
	t.Cleanup(func() {
		if err := p.Unasked(); err != nil {
			t.Error(err)
		}
		p.Kill()
		if t.Failed() {
			t.Logf("the end of the scheduler's log:\n%s", p.Tail(20))
		}
	})
	return p
}

// stop interrupts the scheduler and wants it to end with exit status 0.
func stop(t *testing.T, p *rig.Process) {
	t.Helper()
	if err := p.Stop(20 * time.Second); err != nil {
		t.Error(err)
	} else if code := p.ExitCode(); code != 0 {
		t.Errorf("interrupted, the scheduler ended with exit status %d; the end of its log:\n%s", code, p.Tail(8))
	}
}

// write puts a file into the test's own folder.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fatal(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// namespace makes a namespace of the test's own.
func namespace(t *testing.T) string {
	t.Helper()
	ns, err := cluster.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "integration-"}}, metav1.CreateOptions{})
	fatal(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := cluster.client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

// workload makes n pods that are to be spread over zones, changed as told.
func workload(t *testing.T, ns string, n int, change func(*corev1.Pod)) {
	t.Helper()
	for range n {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: "pod-", Annotations: map[string]string{"espalier.dev/placement": "spread=" + corev1.LabelTopologyZone},
			},
			Spec: corev1.PodSpec{SchedulerName: rig.SchedulerName, Containers: []corev1.Container{{Name: "c", Image: "busybox:1.37"}}},
		}
		change(pod)
		_, err := cluster.client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
		fatal(t, err)
	}
}

// pods makes n pods of one workload for a scheduler.
func pods(t *testing.T, ns, scheduler string, n int) {
	t.Helper()
	workload(t, ns, n, func(p *corev1.Pod) {
		p.Labels = map[string]string{"scheduler": scheduler, "espalier.dev/workload": "w"}
		p.Spec.SchedulerName = scheduler
	})
}

// observe tells where the pods of a selector are.
func observe(t *testing.T, ns, selector string) (*rig.Observation, error) {
	t.Helper()
	return rig.Observe(t.Context(), cluster.client, rig.Workload{Namespace: ns, Selector: selector, Levels: []evenness.Level{{Name: corev1.LabelTopologyZone}}})
}

// observed waits until n pods of a selector have nodes.
func observed(t *testing.T, ns, selector string, n int) *rig.Observation {
	t.Helper()
	var o *rig.Observation
	until(t, fmt.Sprintf("%d pods with %s to have nodes", n, selector), func() (err error) {
		if o, err = observe(t, ns, selector); err == nil && (len(o.Pods) != n || o.Pending > 0) {
			err = fmt.Errorf("there are %d, %d of them pending", len(o.Pods), o.Pending)
		}
		return err
	})
	return o
}

// settled waits until n pods of the scheduler have nodes.
func settled(t *testing.T, ns, scheduler string, n int) *rig.Observation {
	t.Helper()
	return observed(t, ns, "scheduler="+scheduler, n)
}

// even wants the pods to be as even as they can be.
func even(t *testing.T, o *rig.Observation) {
	t.Helper()
	if findings := o.Check(); len(findings) > 0 {
		t.Errorf("not as even as it can be: %s\n%s", strings.Join(findings, "; "), o.Draw())
	}
}

// fatal ends the test if there is an error.
func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until polls; nil ends it.
func until(t *testing.T, what string, check func() error) {
	t.Helper()
	fatal(t, rig.Poll(t.Context(), timeout, 50*time.Millisecond, what, check))
}

const (
	// binFolder is where make build puts the binaries, seen from this folder.
	binFolder = "../../bin"
	// timeout bounds anything that a test waits for.
	timeout = 60 * time.Second
)

// cluster is shared by all tests: twelve nodes in three zones, and no scheduler.
var cluster struct {
	config *rest.Config
	client kubernetes.Interface
	// admin is the path of the administrator's kubeconfig, account of the scheduler's own.
	admin, account string
	binary         string
}

func TestMain(m *testing.M) {
	os.Exit(rig.Suite{Name: "integration", Bin: binFolder}.Main(m, prepare))
}

// prepare applies the rights of the manifests and writes a kubeconfig with them.
func prepare(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
	if cluster.binary, err = rig.Binary("espalier-scheduler", binFolder); err != nil {
		return nil, err
	}
	cluster.admin, cluster.account = d.Kubeconfig, filepath.Join(dir, "scheduler.kubeconfig")
	if cluster.config, cluster.client, err = rig.Client(cluster.admin); err != nil {
		return nil, err
	}
	_, err = rig.Entitle(ctx, cluster.config, cluster.client, manifests.Files, cluster.account)
	return nil, err
}
