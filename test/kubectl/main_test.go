// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var update = flag.Bool("update", false, "write what the commands print into testdata")

const (
	// binFolder is where make build puts the binaries, seen from this folder, and toolsFolder where make tools puts kubectl.
	binFolder   = "../../bin"
	toolsFolder = "../../_output/tools"

	// namespace has the workloads.
	namespace = "shop"
	// closed is the zone that is cordoned while Deployment api comes.
	closed = "zone-b"

	timeout = 90 * time.Second
)

// world is the cluster that all tests look at. Nothing in it changes any more.
var world struct {
	config     *rest.Config
	client     kubernetes.Interface
	kubeconfig string
	// dir takes logs; it is kept if a test fails.
	dir string
	// binary is the path of kubectl-espalier.
	binary  string
	applier *rig.Applier
}

func TestMain(m *testing.M) {
	flag.Parse()
	suite := rig.Suite{Name: "kubectl", Bin: binFolder}
	if *largeFlag > 0 { // nobody is to be in the way of what is measured
		suite.Args = func(string) []string { return []string{"--bare"} }
	}
	os.Exit(suite.Main(m, prepare))
}

// prepare starts the scheduler and has it place the workloads, one after the other: then nothing is left to chance.
func prepare(ctx context.Context, d *rig.Devcluster, dir string) (end func() error, err error) {
	world.kubeconfig, world.dir = d.Kubeconfig, dir
	if world.binary, err = rig.Binary("kubectl-espalier", binFolder); err != nil {
		return nil, err
	}
	if world.config, world.client, err = rig.Client(d.Kubeconfig); err != nil || *largeFlag > 0 {
		return nil, err
	}
	rights := filepath.Join(dir, "scheduler.kubeconfig")
	if world.applier, err = rig.Establish(ctx, world.config, world.client, manifests.Files, rights); err != nil {
		return nil, err
	}
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	if err != nil {
		return nil, err
	}
	// With a Lease: doctor looks for one.
	scheduler, err := rig.StartScheduler(rig.SchedulerOptions{Binary: binary, Kubeconfig: rights, Dir: dir, Args: []string{"--leader-elect=true"}})
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(os.Stderr, "kubectl: having pods placed")
	return func() error { return scheduler.Stop(15 * time.Second) }, layOut(ctx)
}

// layOut makes what the commands look at.
func layOut(ctx context.Context) error {
	if err := ready(ctx, ""); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := world.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return place(ctx, "web.yaml", "app=web", 14) },
		func() error { return place(ctx, "db.yaml", "app=db", 5) },
		func() error { return cordon(ctx, true) },
		func() error { return place(ctx, "api.yaml", "app=api", 8) },
		func() error { return cordon(ctx, false) },
		func() error { return place(ctx, "choosy.yaml", "app=choosy", 0) },
		func() error { return recordOf(ctx, "record.json") },
		func() error { return moves(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until no node keeps pods away, but those with a label.
func ready(ctx context.Context, but string) error {
	return rig.Poll(ctx, timeout, 100*time.Millisecond, "the nodes", func() error {
		nodes, err := world.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			n := &nodes.Items[i]
			isClosed := n.Labels[corev1.LabelTopologyZone] == but
			if isClosed != (len(n.Spec.Taints) > 0) {
				return fmt.Errorf("node %s has the taints %v", n.Name, n.Spec.Taints)
			}
		}
		if len(nodes.Items) == 0 {
			return errors.New("there are none")
		}
		return nil
	})
}

// cordon closes the nodes of a zone, or opens them again.
func cordon(ctx context.Context, is bool) error {
	nodes, err := world.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelTopologyZone + "=" + closed})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, is)
		if _, err := world.client.CoreV1().Nodes().Patch(ctx, nodes.Items[i].Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	if is {
		return ready(ctx, closed)
	}
	return ready(ctx, "")
}

// place applies a file and waits until so many of its pods run, and the scheduler has said something of each of the others.
func place(ctx context.Context, file, selector string, run int) error {
	if err := world.applier.Apply(ctx, os.DirFS("testdata"), file, namespace); err != nil {
		return err
	}
	return rig.Poll(ctx, timeout, 100*time.Millisecond, "the pods of "+file, func() error {
		pods, err := world.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		running, refused := 0, 0
		for i := range pods.Items {
			p := &pods.Items[i]
			switch {
			case p.Status.Phase == corev1.PodRunning:
				running++
			case p.Spec.NodeName == "" && len(p.Status.Conditions) > 0:
				refused++
			}
		}
		if running != run || len(pods.Items) == 0 || running+refused != len(pods.Items) {
			return fmt.Errorf("of %d pods %d run and %d are refused", len(pods.Items), running, refused)
		}
		return nil
	})
}

// recordOf writes down failures as a scheduler does that keeps a record. Ours keeps none, so that it is left as it is.
func recordOf(ctx context.Context, file string) error {
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte("NOW"), []byte(time.Now().UTC().Format(time.RFC3339)))
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other-scheduler-failures"}, Data: map[string]string{"failures.json": string(text)}}
	_, err = world.client.CoreV1().ConfigMaps("kube-system").Create(ctx, record, metav1.CreateOptions{})
	return err
}

// moves makes two, of which one has ended, and an allocation. No controller runs that would do anything about them.
func moves(ctx context.Context) error {
	err := rig.Poll(ctx, timeout, 200*time.Millisecond, "the API server to serve Moves", func() error {
		applier, err := rig.NewApplier(world.config) // which knows the kinds that there are when it is made
		if err != nil {
			return err
		}
		return errors.Join(applier.Apply(ctx, os.DirFS("testdata"), "moves.yaml", namespace), applier.Apply(ctx, os.DirFS("testdata"), "tenants.yaml", ""))
	})
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(world.config)
	if err != nil {
		return err
	}
	api := client.Resource(placementv1alpha1.SchemeGroupVersion.WithResource("moves")).Namespace(namespace)
	status := fmt.Sprintf(`{"status":{"phase":"Done","message":"the pod is gone","endedAt":%q}}`, time.Now().UTC().Format(time.RFC3339))
	_, err = api.Patch(ctx, "web-1", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	return err
}

// run runs the command as a user does, and returns what it prints, what it says on stderr, and its status.
func run(t *testing.T, args ...string) (out, said string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), world.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.kubeconfig)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return stdout.String(), far.ReplaceAllString(stderr.String(), ""), cmd.ProcessState.ExitCode()
}

// fatal ends the test if there is an error.
var fatal = placementtest.Must

// far is how far a command is that takes long, which it says on stderr: on a busy machine any may.
var far = regexp.MustCompile(`(?m)^\d+ of \d+: .*\n`)

// must is run for what has to go well, without a warning.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, said, status := run(t, args...)
	if status != 0 || said != "" {
		t.Fatalf("kubectl espalier %q ends with %d and says %q", args, status, said)
	}
	return out
}
