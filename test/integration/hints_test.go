// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// serve starts the scheduler, and returns it with the address of its metrics.
func serve(t *testing.T, args ...string) (p *rig.Process, metrics string) {
	t.Helper()
	port := freePort(t)
	p = start(t, append(args, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+port,
		"--kubeconfig="+cluster.account, "--authentication-kubeconfig="+cluster.account, "--authorization-kubeconfig="+cluster.account)...)
	return p, "https://127.0.0.1:" + port + "/metrics"
}

var hintLine = regexp.MustCompile(`(?m)^espalier_hints_total\{outcome="(\w+)",profile="espalier-scheduler"\} (\d+)$`)

// hintCounts reads how many pods had which outcome.
func hintCounts(t *testing.T, metrics, token string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	until(t, "the scheduler's metrics", func() error {
		status, body, err := get(t, metrics, token)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		for _, m := range hintLine.FindAllStringSubmatch(body, -1) {
			if n, _ := strconv.Atoi(m[2]); n > 0 { // all are shown from the start
				counts[m[1]] = n
			}
		}
		return err
	})
	return counts
}

// The shipped profile places ordinary pods by hints, each of which is taken, and evenly.
func TestHintsAreTaken(t *testing.T) {
	ns := namespace(t)
	_, metrics := serve(t)
	pods(t, ns, rig.SchedulerName, 13)
	even(t, settled(t, ns, rig.SchedulerName, 13))
	if got := hintCounts(t, metrics, metricsToken(t, ns)); got["proposed"] != 13 || got["used"] != 13 || len(got) != 2 {
		t.Errorf("of 13 pods these had a hint, and took it: %v", got)
	}
}

// Without the feature gate the scheduler says in one line that there are no hints, and
// spreads without.
func TestHintsWithoutTheirGate(t *testing.T) {
	ns := namespace(t)
	p, metrics := serve(t, "--feature-gates=OpportunisticBatching=false")
	pods(t, ns, rig.SchedulerName, 7)
	even(t, settled(t, ns, rig.SchedulerName, 7))
	if got := hintCounts(t, metrics, metricsToken(t, ns)); len(got) != 0 {
		t.Errorf("there were hints: %v", got)
	}
	const want = `Warning: profile "espalier-scheduler": fast path disabled`
	if log := p.Tail(1000); strings.Count(log, want) != 1 {
		t.Errorf("%q is not one line of its log:\n%s", want, log)
	}
}

// oddWorkloads are pods that something is to be thought of for, with how many there are.
// The cluster has three zones of two nodes.
var oddWorkloads = map[string]struct {
	n      int
	change func(p *corev1.Pod, self *metav1.LabelSelector)
}{
	"plain": {7, func(*corev1.Pod, *metav1.LabelSelector) {}},
	"selective": {4, func(p *corev1.Pod, _ *metav1.LabelSelector) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "zone-b"}
	}},
	"nowhere": {2, func(p *corev1.Pod, _ *metav1.LabelSelector) {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "nowhere"}
	}},
	"lonely": {7, func(p *corev1.Pod, self *metav1.LabelSelector) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: self, TopologyKey: corev1.LabelHostname}},
		}}
	}},
	"hard": {5, func(p *corev1.Pod, self *metav1.LabelSelector) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: self,
		}}
	}},
	"limited": {7, func(p *corev1.Pod, _ *metav1.LabelSelector) {
		p.Annotations["espalier.dev/domain-limits"] = corev1.LabelTopologyZone + "=2"
	}},
	"ported": {7, func(p *corev1.Pod, _ *metav1.LabelSelector) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 30080}}
	}},
	"preferring": {4, func(p *corev1.Pod, self *metav1.LabelSelector) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: self, TopologyKey: corev1.LabelHostname}},
			},
		}}
	}},
}

// odd makes the pods of a workload, and waits until each has a node or was refused one.
// It returns how many are in each zone, the most first, and pending.
func odd(t *testing.T, ns, name string) []int {
	t.Helper()
	workload := oddWorkloads[name]
	labels := map[string]string{"odd": name, "espalier.dev/workload": name}
	for range workload.n {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: name + "-", Labels: labels,
				Annotations: map[string]string{"espalier.dev/placement": "spread=" + corev1.LabelTopologyZone},
			},
			Spec: corev1.PodSpec{SchedulerName: rig.SchedulerName, Containers: []corev1.Container{{Name: "c", Image: "busybox:1.37"}}},
		}
		workload.change(pod, &metav1.LabelSelector{MatchLabels: labels})
		if _, err := cluster.client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	zones := make(map[string]int)
	pending := 0
	until(t, "the pods of "+name+" to be decided", func() error {
		list, err := cluster.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "odd=" + name})
		if err != nil {
			return err
		}
		clear(zones)
		pending = 0
		for i := range list.Items {
			pod := &list.Items[i]
			switch {
			case pod.Spec.NodeName != "":
				zones[zoneOf(t, pod.Spec.NodeName)]++
			case slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }):
				pending++
			default:
				return fmt.Errorf("%s has neither", pod.Name)
			}
		}
		return nil
	})
	counts := slices.Sorted(maps.Values(zones))
	slices.Reverse(counts)
	return append(counts, pending)
}

func zoneOf(t *testing.T, node string) string {
	t.Helper()
	n, err := cluster.client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n.Labels[corev1.LabelTopologyZone]
}

// withHints is the flag for the shipped configuration with or without hints.
func withHints(t *testing.T, mode string) string {
	t.Helper()
	return shippedBut(t, "nodeHint: Enabled", "nodeHint: "+mode)
}

// shippedBut is the flag of the shipped configuration with something else in the place of a part.
func shippedBut(t *testing.T, part, other string) string {
	t.Helper()
	if !strings.Contains(string(manifests.SchedulerConfig), part) {
		t.Fatalf("%q is not in the configuration", part)
	}
	return "--config=" + write(t, "config.yaml", strings.Replace(string(manifests.SchedulerConfig), part, other, 1))
}

// noPods removes all pods of a namespace: on their nodes they would be load.
func noPods(t *testing.T, ns string) {
	t.Helper()
	if err := cluster.client.CoreV1().Pods(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the pods to be gone", func() error {
		list, err := cluster.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
}

// Pods that something is to be thought of for end the same with hints and without.
func TestHintsChangeNothing(t *testing.T) {
	spreads := make(map[string]map[string][]int)
	for _, mode := range []string{"Enabled", "Disabled"} {
		t.Run(mode, func(t *testing.T) {
			ns := namespace(t)
			p, metrics := serve(t, withHints(t, mode))
			spreads[mode] = make(map[string][]int)
			for _, name := range slices.Sorted(maps.Keys(oddWorkloads)) {
				spreads[mode][name] = odd(t, ns, name)
			}
			if got := hintCounts(t, metrics, metricsToken(t, ns)); (mode == "Enabled") != (got["used"] > 0 && got["none"] > 0 && got["preferences"] > 0) || got["unused"] > 0 {
				t.Errorf("hints: %v", got)
			}
			stop(t, p)
			noPods(t, ns)
		})
	}
	want := map[string][]int{
		"plain": {3, 2, 2, 0}, "selective": {4, 0}, "nowhere": {2}, "lonely": {2, 2, 2, 1}, "hard": {2, 2, 1, 0},
		"limited": {2, 2, 2, 1}, "ported": {2, 2, 2, 1}, "preferring": {2, 1, 1, 0},
	}
	for mode, got := range spreads {
		if d := gocmp.Diff(want, got); d != "" {
			t.Errorf("nodeHint: %s, want -, got +:\n%s", mode, d)
		}
	}
}
