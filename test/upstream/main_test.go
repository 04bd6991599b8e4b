// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

const (
	// binFolder is where make build puts the binaries, seen from this folder.
	binFolder = "../../bin"
	// profiles is the configuration that puts Espalier in the default scheduler's place, under its name too.
	profiles = "../../manifests/overlays/replace-default/scheduler-config.yaml"
	// gate turns gangs on, in the API server and in the scheduler; api has the API server serve their kinds.
	gate = "--feature-gates=GenericWorkload=true"
	api  = "--runtime-config=scheduling.k8s.io/v1beta1=true"
)

// settings are the flags of the specs' framework that this cluster needs. They may be given otherwise.
var settings = map[string]string{
	"provider":                    "skeleton", // no cloud
	"num-nodes":                   "4",        // those of nodes.yaml
	"e2e-verify-service-account":  "false",    // nothing in a played container uses one
	"gather-resource-usage":       "none",     // nobody plays cAdvisor
	"ginkgo.v":                    "true",
	"ginkgo.timeout":              "55m",
	"ginkgo.github-output":        "false",
	"ginkgo.silence-skips":        "false",
	"ginkgo.poll-progress-after":  "0s",
	"ginkgo.fail-on-empty":        "true",
	"allowed-not-ready-nodes":     "0",
	"dump-logs-on-failure":        "true",
	"system-pods-startup-timeout": "1m",
}

// skipped are the specs that are not run, by a part of the name, and why. docs/autoscalers.md has them too.
var skipped = map[string]string{
	"with the async preemption":                      "KWOK takes off the finalizers of a pod that is to be deleted, which the spec has put on",
	"PodTopologySpread Preemption":                   "KWOK deletes pods by name alone: one that is made anew at once goes with the one before",
	"preferably scheduled to nodes pod can tolerate": "a soft taint counts inside a zone, and not between zones: one in which all nodes have some is as good as another",
}

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := flag.Set(name, settings[name]); err != nil {
			fmt.Fprintf(os.Stderr, "upstream: -%s=%s: %v\n", name, settings[name], err)
			os.Exit(1)
		}
	}
	if err := flag.Set("ginkgo.skip", strings.Join(slices.Sorted(maps.Keys(skipped)), "|")); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
	flag.Parse()
	if rig.Listing() {
		os.Exit(m.Run())
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := rig.Main("upstream", func() (int, error) {
		return rig.InFolder("upstream", func(dir string) (int, error) {
			args := []string{"--nodes-file=nodes.yaml", gate, api}
			return rig.OnDevcluster(ctx, "upstream", binFolder, dir, args, func(d *rig.Devcluster) (int, error) {
				return run(ctx, d.Kubeconfig, dir, m)
			})
		})
	})
	cancel()
	os.Exit(code)
}

// run has Espalier schedule the pods of a cluster, and runs the specs there.
//
// The scheduler has an administrator's rights. Those of the manifests are held to what it does elsewhere.
func run(ctx context.Context, kubeconfig, dir string, m *testing.M) (code int, err error) {
	_, client, err := rig.Client(kubeconfig)
	if err != nil {
		return 1, err
	}
	binary, err := rig.Binary("espalier-scheduler", binFolder)
	if err != nil {
		return 1, err
	}
	scheduler, err := rig.StartScheduler(rig.SchedulerOptions{Binary: binary, Kubeconfig: kubeconfig, Dir: dir, Args: []string{"--config=" + profiles, gate}})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopped := scheduler.StopCleanly(15 * time.Second); err == nil {
			err = stopped
		}
	}()
	if err := runSystemPods(ctx, client); err != nil {
		return 1, err
	}
	offering, cancel := context.WithCancel(ctx)
	defer cancel()
	go offer(offering, client)
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		fmt.Fprintf(os.Stderr, "upstream: not run: %q: %s\n", name, skipped[name])
	}
	framework.TestContext.KubeConfig = kubeconfig
	framework.AfterReadingAllFlags(&framework.TestContext)
	return rig.UntilInterrupted(ctx, m)
}

// systemPod begins the name of a pod of the namespace kube-system on each node. Specs wait a minute for three such pods
// on each, by their names, and go on without them. One that has all names saves the minutes.
const systemPod = "kube-proxy-fluentd-elasticsearch-node-problem-detector-"

// runSystemPods puts a pod on each node as a DaemonSet's would be there: the scheduler binds it, and no preemption takes it away.
func runSystemPods(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		node := nodes.Items[i].Name
		_, err := client.CoreV1().Pods(metav1.NamespaceSystem).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: systemPod + node},
			Spec: corev1.PodSpec{
				PriorityClassName: "system-node-critical",
				Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
						{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
					}}},
				}}},
				Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("making a system pod on node %s: %w", node, err)
		}
	}
	return rig.Poll(ctx, time.Minute, 200*time.Millisecond, "the system pods", func() error {
		pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; strings.HasPrefix(p.Name, systemPod) && p.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
			}
		}
		return nil
	})
}

// offer lets pods have what nodes have, until the context ends. Specs add resources of their own to the capacity of nodes, and
// take them away; a kubelet offers such to pods within seconds, and played nodes have none that does.
func offer(ctx context.Context, client kubernetes.Interface) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			fmt.Fprintln(os.Stderr, "upstream: listing nodes:", err)
			return
		}
		for i := range nodes.Items {
			node := &nodes.Items[i]
			if equality.Semantic.DeepEqual(node.Status.Allocatable, node.Status.Capacity) {
				continue
			}
			node.Status.Allocatable = node.Status.Capacity
			// On a conflict, the next look is at the node as it is.
			if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "upstream: writing what node %s offers: %v\n", node.Name, err)
			}
		}
	}, 500*time.Millisecond)
}
