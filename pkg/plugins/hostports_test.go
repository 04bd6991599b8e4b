// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/hostports"
)

// house is the profile over the scheduler's real cache: it goes through whole cycles
// and leaves out only the API server.
type house struct {
	placementtest.TB
	ctx      context.Context
	f        framework.Framework
	cache    cache.Cache
	snapshot *cache.Snapshot
}

func newHouse(t *testing.T, nodes ...string) *house {
	t.Helper()
	h := &house{TB: t, ctx: t.Context(), snapshot: cache.NewEmptySnapshot()}
	_, h.f = profile(t, h.snapshot)
	h.cache = cache.New(t.Context(), nil, false, false)
	h.join(nodes...)
	return h
}

// join adds nodes, in the notation "a1 zone=a".
func (h *house) join(texts ...string) {
	for _, text := range texts {
		name, label, _ := strings.Cut(text, " ")
		n := st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "10"})
		if key, value, ok := strings.Cut(label, "="); ok {
			n.Label(key, value)
		}
		h.cache.AddNode(klog.Background(), n.Obj())
	}
}

// place leads a pod through a cycle and returns its node, or what it is told instead.
func (h *house) place(pod *corev1.Pod) (node, refusal string) {
	h.Helper()
	if err := h.cache.UpdateSnapshot(klog.Background(), h.snapshot); err != nil {
		h.Fatal(err)
	}
	ctx, state := h.ctx, framework.NewCycleState()
	if _, status, _ := h.f.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		h.Fatalf("PreFilter of %s: %v", pod.Name, status)
	}
	all, err := h.snapshot.NodeInfos().List()
	if err != nil {
		h.Fatal(err)
	}
	statuses := framework.NewDefaultNodeToStatus()
	var fit []fwk.NodeInfo
	for _, n := range all {
		if status := h.f.RunFilterPlugins(ctx, state, pod, n); status.IsSuccess() {
			fit = append(fit, n)
		} else {
			statuses.Set(n.Node().Name, status)
		}
	}
	if len(fit) == 0 {
		e := framework.FitError{Pod: pod, NumAllNodes: len(all), Diagnosis: framework.Diagnosis{NodeToStatus: statuses}}
		return "", e.Error()
	}
	if status := h.f.RunPreScorePlugins(ctx, state, pod, fit); !status.IsSuccess() {
		h.Fatalf("PreScore of %s: %v", pod.Name, status)
	}
	scores, status := h.f.RunScorePlugins(ctx, state, pod, fit)
	if !status.IsSuccess() {
		h.Fatalf("Score of %s: %v", pod.Name, status)
	}
	node = best(scores)[0]
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = node
	if err := h.cache.AssumePod(klog.Background(), assumed); err != nil {
		h.Fatal(err)
	}
	if status := h.f.RunReservePluginsReserve(ctx, state, assumed, node); !status.IsSuccess() {
		h.Fatalf("Reserve of %s: %v", pod.Name, status)
	}
	return node, ""
}

// web is a pod of one workload with host ports, in the notation "58/TCP".
func web(name, placement string, ports ...string) *corev1.Pod {
	var list []corev1.ContainerPort
	for _, text := range ports {
		p := corev1.ContainerPort{ContainerPort: 80}
		if _, err := fmt.Sscanf(text, "%d/%s", &p.HostPort, &p.Protocol); err != nil {
			panic(err)
		}
		list = append(list, p)
	}
	pod := st.MakePod().Namespace("ns").Name(name).UID(name).Label(clusterview.WorkloadLabel, "web").ContainerPort(list)
	if placement != "" {
		pod.Annotation(clusterview.PlacementAnnotation, placement)
	}
	return pod.Obj()
}

// A workload with a host port is one pod a node. The tree is told by the filters, and
// is as even as the room allows: to the third pod of every zone, then the zones that
// are full are passed over.
func TestHostPortsAndTheTree(t *testing.T) {
	h := newHouse(t, "a1 zone=a", "a2 zone=a", "a3 zone=a", "a4 zone=a", "b1 zone=b", "b2 zone=b", "c1 zone=c")
	zones, nodes := map[string]int{}, map[string]int{}
	for i, want := range []map[string]int{
		{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1},
		{"a": 2, "b": 1, "c": 1}, {"a": 2, "b": 2, "c": 1}, {"a": 3, "b": 2, "c": 1}, {"a": 4, "b": 2, "c": 1},
	} {
		node, refusal := h.place(web(fmt.Sprintf("p%d", i), "spread=zone", "80/TCP"))
		if node == "" {
			t.Fatalf("pod %d: %s", i, refusal)
		}
		zones[node[:1]]++
		nodes[node]++
		if !maps.Equal(zones, want) {
			t.Errorf("after %d pods the zones have %v, want %v", i+1, zones, want)
		}
	}
	if len(nodes) != 7 {
		t.Errorf("seven pods with one host port are on %v", nodes)
	}
	const full = "0/7 nodes are available: 7 " + hostports.ErrReasonTaken + "80/tcp."
	if node, refusal := h.place(web("p7", "spread=zone", "80/TCP")); refusal != full {
		t.Errorf("the eighth pod: %q, %s", node, refusal)
	}
	h.join("c2 zone=c")
	if node, refusal := h.place(web("p7", "spread=zone", "80/TCP")); node != "c2" {
		t.Errorf("the eighth pod, on an eighth node: %q, %s", node, refusal)
	}
}

// SwarmKit's host ports (TestSchedulerHostPort), with no nodes at first.
func TestVector_2_11_HostPorts(t *testing.T) {
	h := newHouse(t)
	t1, t2, t3 := web("t1", "", "58/TCP"), web("t2", "", "58/UDP"), web("t3", "", "58/UDP", "58/TCP")
	for _, pod := range []*corev1.Pod{t1, t2} {
		if node, refusal := h.place(pod); node != "" || !strings.HasPrefix(refusal, "0/0 nodes are available") {
			t.Errorf("%s, without nodes: %q, %s", pod.Name, node, refusal)
		}
	}
	h.join("n1", "n2")
	var on []string
	for _, pod := range []*corev1.Pod{t1, t2} {
		node, refusal := h.place(pod)
		if node == "" {
			t.Errorf("%s: %s", pod.Name, refusal)
		}
		on = append(on, node)
	}
	slices.Sort(on)
	if !slices.Equal(on, []string{"n1", "n2"}) {
		t.Errorf("t1 and t2 are on %q, want one on each", on)
	}
	const taken = "0/2 nodes are available: 1 " + hostports.ErrReasonTaken + "58/tcp, 1 " + hostports.ErrReasonTaken + "58/udp."
	if node, refusal := h.place(t3); refusal != taken {
		t.Errorf("t3: %q, %s\nwant %s", node, refusal, taken)
	}
}
