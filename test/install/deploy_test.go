// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// timeout bounds anything that a test waits for.
const timeout = 60 * time.Second

// deploy runs what make deploy and make undeploy run.
func deploy(t *testing.T, action string, flags ...string) {
	t.Helper()
	if out, err := tryDeploy(t, action, flags...); err != nil {
		t.Fatalf("hack/deploy.sh %s: %v\n%s", action, err, out)
	}
}

// tryDeploy is deploy for what may fail. It returns what is said.
func tryDeploy(t *testing.T, action string, flags ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../hack/deploy.sh", append([]string{action}, flags...)...)
	cmd.Env = append(environment(), "ESPALIER_TOOLS="+cluster.tools)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// everything names all objects of the cluster, but for those that come and go by themselves.
func everything(t *testing.T) map[string]bool {
	t.Helper()
	objects, err := rig.Contents(t.Context(), cluster.config)
	fatal(t, err)
	all := map[string]bool{}
	for o := range objects {
		all[o.String()] = true
	}
	return all
}

// difference names what is in the second and not in the first.
func difference(before, after map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(after)), func(name string) bool { return before[name] })
}

// TestDeployAndUndeploy installs as an operator does, sees that what was installed
// places a pod with its own rights and its own configuration, and removes it.
func TestDeployAndUndeploy(t *testing.T) {
	before := everything(t)
	deploy(t, "up")
	// Again, as an upgrade: the same command must do.
	deploy(t, "up", "--set", "scheduler.replicas=3,scheduler.leaderElection.resourceName=its-own,scheduler.leaderElection.resourceNamespace=default", "--set-json",
		`scheduler.profiles=[{}, {"schedulerName": "other"}, {"schedulerName": "third", "pluginArgs": {"FaultyNode": {"record": {"namespace": "default"}}}}]`)
	// And once more: what an operator has set stays, but no digest that would win over this tree's tag.
	keepsValues(t)
	there := difference(before, everything(t))
	for _, want := range []string{
		"deployments.apps kube-system/espalier-scheduler", "deployments.apps kube-system/espalier-controller",
		"customresourcedefinitions.apiextensions.k8s.io /placementpolicies.placement.espalier.dev",
		"customresourcedefinitions.apiextensions.k8s.io /clusterplacementpolicies.placement.espalier.dev",
	} {
		if !slices.Contains(there, want) {
			t.Errorf("%s is not there; new are %v", want, there)
		}
	}
	places(t, "espalier", metav1.NamespaceSystem)
	// Profiles go, and their records with them; who stays keeps its own.
	deploy(t, "up", "--set-json", `scheduler.profiles=[{}]`)
	there = difference(before, everything(t))
	records := slices.DeleteFunc(there, func(name string) bool {
		return !strings.HasPrefix(name, "configmaps.") || !strings.HasSuffix(name, "-failures")
	})
	if want := []string{"configmaps. kube-system/espalier-scheduler-failures"}; !slices.Equal(records, want) {
		t.Errorf("without two of its profiles the records are %q, want %q", records, want)
	}
	deploy(t, "down")
	leavesNothing(t, before)
	// There is nothing to remove, and that is no failure.
	deploy(t, "down")
}

// TestUndeployThatCannotEnd has a Deployment that does not go, as where a node that is lost holds its pods:
// that is said in time, and nothing else is removed before. Nor is, ever, the Lease of the default scheduler.
func TestUndeployThatCannotEnd(t *testing.T) {
	leases := cluster.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "kube-scheduler"}}
	_, err := leases.Create(t.Context(), lease, metav1.CreateOptions{})
	fatal(t, err)
	before := everything(t)
	deploy(t, "up", "--set", "scheduler.leaderElection.resourceName=kube-scheduler,scheduler.leaderElection.resourceNamespace=kube-system")
	installed := difference(before, everything(t))
	held := []string{"patch", "deployment", "espalier-scheduler", "--namespace", "kube-system", "--type", "merge", "--patch"}
	must(t, "", "kubectl", append(held, `{"metadata":{"finalizers":["example.com/held"]}}`)...)
	t.Setenv("UNDEPLOY_TIMEOUT", "3s")
	said, err := tryDeploy(t, "down")
	if want := "are not gone after 3s"; err == nil || !strings.Contains(said, want) {
		t.Errorf("removing a Deployment that does not go: want an error with %q, got %v:\n%s", want, err, said)
	}
	now := everything(t)
	for _, name := range installed {
		if !now[name] && !strings.HasPrefix(name, "pods.") && !strings.HasPrefix(name, "replicasets.") && !strings.HasPrefix(name, "deployments.") {
			t.Errorf("%s was removed before the Deployments were gone", name)
		}
	}
	must(t, "", "kubectl", append(held, `{"metadata":{"finalizers":null}}`)...)
	deploy(t, "down")
	leavesNothing(t, before)
	if err := leases.Delete(t.Context(), lease.Name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("the Lease of the default scheduler, which is another's: %v", err)
	}
}

// keepsValues deploys with values of its own, and then without: they are still there.
func keepsValues(t *testing.T) {
	t.Helper()
	deploy(t, "up", "--set", "imageRegistry=registry.example.com/espalier,scheduler.image.digest=sha256:"+strings.Repeat("0", 64))
	deploy(t, "up")
	deployment, err := cluster.client.AppsV1().Deployments(metav1.NamespaceSystem).Get(t.Context(), "espalier-scheduler", metav1.GetOptions{})
	fatal(t, err)
	if got := *deployment.Spec.Replicas; got != 3 {
		t.Errorf("deployed anew there are %d schedulers, want the 3 of before", got)
	}
	if got := deployment.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(got, "registry.example.com/espalier/espalier-scheduler:v") {
		t.Errorf("deployed anew the image is %s, want the registry of before and a tag of this tree", got)
	}
}

// TestTwoReleases installs two releases side by side: each places the pods that ask for it, and they share the kind and nothing else.
func TestTwoReleases(t *testing.T) {
	before := everything(t)
	must(t, "", "helm", "install", "one", chart, "--namespace", "one", "--create-namespace")
	first := difference(before, everything(t))
	must(t, "", "helm", "install", "two", chart, "--namespace", "two", "--create-namespace", "--set", "controller.enabled=false")
	places(t, "one-espalier", "one")
	places(t, "two-espalier", "two")
	must(t, "", "helm", "uninstall", "two", "--namespace", "two")
	now := everything(t)
	for _, name := range first {
		if !now[name] && !strings.HasPrefix(name, "pods.") && !strings.HasPrefix(name, "replicasets.") {
			t.Errorf("removing the second release removed %s of the first", name)
		}
	}
	must(t, "", "helm", "uninstall", "one", "--namespace", "one")
	must(t, "", "kubectl", "delete", "namespace", "one", "two", "--wait")
	must(t, "", "kubectl", "delete", "-f", chart+"/crds", "--wait")
	leavesNothing(t, before)
}

func leavesNothing(t *testing.T, before map[string]bool) {
	t.Helper()
	var left []string
	// What belongs to a removed object is collected a moment later.
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		left = difference(before, everything(t))
		return len(left) == 0, nil
	})
	if err != nil {
		t.Errorf("left are %v", left)
	}
}

// places runs the scheduler of a release as this cluster cannot, for want of kubelets: outside, but as the release's ServiceAccount, with
// its ConfigMap and behind its Lease. A pod of each profile is placed and fails, and the profile writes that down.
func places(t *testing.T, name, namespace string) {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	account := name + "-scheduler"
	kubeconfig := filepath.Join(dir, "kubeconfig")
	fatal(t, rig.WriteKubeconfigIn(ctx, cluster.config, cluster.client, namespace, account, kubeconfig))
	cm, err := cluster.client.CoreV1().ConfigMaps(namespace).Get(ctx, account+"-config", metav1.GetOptions{})
	fatal(t, err)
	config := filepath.Join(dir, "scheduler-config.yaml")
	fatal(t, os.WriteFile(config, []byte(cm.Data["scheduler-config.yaml"]), 0o600))
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	fatal(t, err)
	scheduler, err := rig.Start(rig.Command{
		Name: account, Path: binary, Dir: cluster.dir,
		Args: []string{"--config=" + config, "--kubeconfig=" + kubeconfig, "--secure-port=0"},
	})
	fatal(t, err)
	for _, profile := range read(t, cm.Data["scheduler-config.yaml"]).Profiles {
		placesOne(t, scheduler, profile)
	}
	elected := read(t, cm.Data["scheduler-config.yaml"]).LeaderElection
	lease, err := cluster.client.CoordinationV1().Leases(elected.ResourceNamespace).Get(ctx, elected.ResourceName, metav1.GetOptions{})
	if err != nil {
		t.Errorf("the Lease: %v", err)
	} else if host, err := os.Hostname(); err != nil || !strings.HasPrefix(ptr.Deref(lease.Spec.HolderIdentity, ""), host+"_") {
		// In a pod that is its name, by which docs/operations.md finds the one that places pods.
		t.Errorf("the Lease is held by %q, want a name that begins with %s_: %v", ptr.Deref(lease.Spec.HolderIdentity, ""), host, err)
	}
	if err := scheduler.StopCleanly(15 * time.Second); err != nil {
		t.Error(err)
	}
}

// placesOne makes a pod for one profile, which fails, and waits for the record of that.
func placesOne(t *testing.T, scheduler *rig.Process, profile schedulerapi.KubeSchedulerProfile) {
	t.Helper()
	name, record := profile.SchedulerName, recordOf(profile)
	if record == nil {
		t.Fatalf("the profile %s keeps no record", name)
	}
	pods := cluster.client.CoreV1().Pods(metav1.NamespaceDefault)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"devcluster.espalier.dev/fail": "error"}},
		Spec:       corev1.PodSpec{SchedulerName: name, Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/c:1"}}},
	}
	_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	fatal(t, err)
	state := "created"
	err = wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-scheduler.Done():
			return false, fmt.Errorf("the scheduler has ended: %w", scheduler.Err())
		default:
		}
		p, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil || p.Spec.NodeName == "" {
			return false, err
		}
		state = fmt.Sprintf("placed on %s, and %s", p.Spec.NodeName, p.Status.Phase)
		_, err = cluster.client.CoreV1().ConfigMaps(record.namespace).Get(ctx, record.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Errorf("the pod for %s is %s, and waiting for its failure in %v: %v; the scheduler says\n%s", name, state, *record, err, scheduler.Tail(12))
	}
	if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Error(err)
	}
}
