// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

var largeFlag = flag.Int("large", 0, "measure in a cluster of so many nodes, with ten pods each, in place of all other tests")

const (
	podsOfNode  = 10
	podsOfLarge = 25 // pods of a Deployment there
	creators    = 16
)

// measured are the commands, and how long each may take beyond what the API server takes to send what it reads.
var measured = []struct {
	args  string
	limit time.Duration
}{
	{"tree deployment/web-00000", 3 * time.Second},
	{"balance -A", 3 * time.Second},
	{"simulate -f FILE --replicas 1025", 10 * time.Second},
}

// mostMemory is what a command may take.
const mostMemory = 1 << 30

// TestLarge measures the commands before a real API server. `make perf-kubectl` runs it with 5,000 nodes.
func TestLarge(t *testing.T) {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "large" })
	if asked && *largeFlag < 1 {
		t.Fatalf("-large=%d: write a number of nodes above 0", *largeFlag)
	}
	if *largeFlag == 0 {
		t.Skip("this takes minutes: `make perf-kubectl` runs it")
	}
	config := rest.CopyConfig(world.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	fatal(t, err)
	manifest := filepath.Join(t.TempDir(), "web.yaml")
	fatal(t, fill(t.Context(), client, *largeFlag, manifest))
	api := apiTime(t, config, client)
	var table strings.Builder
	fmt.Fprintf(&table, "| %d nodes, %d pods | in all | beyond the API server's %s | memory |\n| --- | --: | --: | --: |\n", *largeFlag, *largeFlag*podsOfNode, seconds(api))
	for _, m := range measured {
		args := strings.Fields(strings.ReplaceAll(m.args, "FILE", manifest))
		took, memory := measure(t, append(args, "-n", namespace)...)
		fmt.Fprintf(&table, "| `%s` | %s | %s | %d MiB |\n", m.args, seconds(took), seconds(took-api), memory>>20)
		if took-api > m.limit {
			t.Errorf("%s takes %s beyond the API server's %s, and may take %s", m.args, seconds(took-api), seconds(api), m.limit)
		}
		if memory > mostMemory {
			t.Errorf("%s takes %d MiB, and may take %d", m.args, memory>>20, mostMemory>>20)
		}
	}
	t.Log("\n" + table.String())
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// measure runs a command, and returns how long it takes and its peak of memory.
func measure(t *testing.T, args ...string) (took time.Duration, memory int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), world.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.kubeconfig)
	var said bytes.Buffer
	cmd.Stderr = &said
	begun := time.Now()
	out, err := cmd.Output()
	took = time.Since(begun)
	if err != nil || len(out) == 0 {
		t.Fatalf("%v: %v: %s", args, err, &said)
	}
	used, is := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !is {
		t.Fatal("nothing is known of its memory")
	}
	return took, used.Maxrss << 10 // of Linux, in KiB
}

// apiTime is how long the API server takes to send all that the commands read.
func apiTime(t *testing.T, config *rest.Config, client *kubernetes.Clientset) time.Duration {
	t.Helper()
	begun := time.Now()
	for _, path := range []string{"/api/v1/pods", "/api/v1/nodes", "/apis/apps/v1/replicasets", "/apis/apps/v1/deployments"} {
		_, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", config.ContentType).DoRaw(t.Context())
		fatal(t, err)
	}
	return time.Since(begun)
}

// fill makes nodes in six zones of ten racks, and Deployments whose pods are anywhere. It writes one of the Deployments into a file.
func fill(ctx context.Context, client kubernetes.Interface, nodes int, manifest string) error {
	if err := emptyNamespace(ctx, client); err != nil {
		return err
	}
	err := each(ctx, "nodes", nodes, func(ctx context.Context, i int) error {
		_, err := client.CoreV1().Nodes().Create(ctx, largeNode(i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	deployments := nodes * podsOfNode / podsOfLarge
	sets := make([]*appsv1.ReplicaSet, deployments)
	err = each(ctx, "Deployments", deployments, func(ctx context.Context, i int) (err error) {
		d, err := client.AppsV1().Deployments(namespace).Create(ctx, largeDeployment(i), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		set := &appsv1.ReplicaSet{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}}
		set.Name, set.OwnerReferences = d.Name+"-1", []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		sets[i], err = client.AppsV1().ReplicaSets(namespace).Create(ctx, set, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	err = each(ctx, "pods", deployments*podsOfLarge, func(ctx context.Context, i int) error {
		set := sets[i/podsOfLarge]
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Name, pod.OwnerReferences = fmt.Sprintf("%s-%02d", set.Name, i%podsOfLarge), []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		pod.Spec.NodeName = largeNode((31*i*i + 7919*i) % nodes).Name // anywhere, and the same each time
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return writeManifest(manifest, largeDeployment(0))
}

// each makes n objects, many at a time, and says how far it is.
func each(ctx context.Context, what string, n int, do func(context.Context, int) error) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	said := time.Now()
	for i := range n {
		if going.Err() != nil {
			break
		}
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "kubectl: %d of %d %s made\n", i, n, what)
		}
		group.Go(func() error { return do(going, i) })
	}
	return group.Wait()
}

// emptyNamespace makes one in which pods can be made: no controller makes its service account here.
func emptyNamespace(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	return err
}

func largeNode(i int) *corev1.Node {
	name, zone := fmt.Sprintf("node-%05d", i), fmt.Sprintf("zone-%d", i%6)
	capacity := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("250")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: zone, "example.com/rack": fmt.Sprintf("%s-rack-%d", zone, i/6%10),
		}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func largeDeployment(i int) *appsv1.Deployment {
	name := fmt.Sprintf("web-%05d", i)
	labels := map[string]string{"app": name}
	var spread []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelTopologyZone, "example.com/rack"} {
		spread = append(spread, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		})
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		SchedulerName: rig.SchedulerName, AutomountServiceAccountToken: new(bool), TopologySpreadConstraints: spread,
		Containers: []corev1.Container{{Name: "web", Image: "registry.example.com/web:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(50+10*(i%10)), resource.DecimalSI), "memory": resource.MustParse("64Mi")},
		}}},
	}}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(podsOfLarge)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}
}

func writeManifest(file string, d *appsv1.Deployment) error {
	text, err := yaml.Marshal(d)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
