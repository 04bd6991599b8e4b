// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

// infoOf is a node with pods, each given by its ports.
func infoOf(t testing.TB, node *corev1.Node, pods ...[]string) *framework.NodeInfo {
	t.Helper()
	var running []*corev1.Pod
	for i, ports := range pods {
		name := string(rune('a' + i))
		running = append(running, wanting(t, ports...).Name(name).UID(name).Node(node.Name).Obj())
	}
	info := framework.NewNodeInfo(running...)
	info.SetNode(node)
	return info
}

// filter leads a pod through PreFilter and Filter.
func filter(t testing.TB, pl *HostPorts, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	t.Helper()
	state := framework.NewCycleState()
	if _, status := pl.PreFilter(t.Context(), state, pod, []fwk.NodeInfo{info}); !status.IsSuccess() {
		t.Fatalf("PreFilter: %v", status)
	}
	return pl.Filter(t.Context(), state, pod, info)
}

func TestPreFilter(t *testing.T) {
	pl := newPlugin(t, "22/tcp", "8000-8010/udp")
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		code fwk.Code
		says string
	}{
		{"no ports", wanting(t), fwk.Skip, ""},
		{"ports", wanting(t, "80/tcp"), fwk.Success, ""},
		{"ports, and a node: it is to be resized", wanting(t, "22/tcp").Node("n"), fwk.Skip, ""},
		{"of no node", wanting(t, "80/tcp", "22/tcp"), fwk.UnschedulableAndUnresolvable,
			"host port 22/tcp is reserved on all nodes by argument reserved of plugin HostPorts: use another host port"},
		{"of no node, in a range and at an address", wanting(t, "127.0.0.1:8003/udp"), fwk.UnschedulableAndUnresolvable,
			"host port 127.0.0.1:8003/udp is reserved on all nodes by argument reserved of plugin HostPorts: use another host port"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result, status := pl.PreFilter(t.Context(), framework.NewCycleState(), tc.pod.Obj(), nil)
			if result != nil || status.Code() != tc.code || status.Message() != tc.says {
				t.Errorf("got %v, %v, want %v, %q", result, status, tc.code, tc.says)
			}
		})
	}
	plugintest.WantNoExtensions(t, pl)
}

// refused is how often a reason was counted.
func refused(t *testing.T, reason string) float64 {
	t.Helper()
	counter := nodeMalformed
	switch {
	case strings.HasPrefix(reason, ErrReasonTaken):
		counter = portTaken
	case strings.HasPrefix(reason, ErrReasonReserved):
		counter = portReserved
	}
	n, err := testutil.GetCounterMetricValue(counter.CounterMetric)
	must(t, err)
	return n
}

func TestFilter(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pod    []string
		node   string // its annotation
		holds  []string
		code   fwk.Code
		reason string
	}{
		{"free", []string{"80/tcp"}, "", nil, fwk.Success, ""},
		{"another protocol", []string{"80/tcp"}, "", []string{"80/udp", "80/sctp"}, fwk.Success, ""},
		{"the same address", []string{"127.0.0.1:80/tcp"}, "", []string{"127.0.0.1:80/tcp"}, fwk.Unschedulable, ErrReasonTaken + "127.0.0.1:80/tcp"},
		{"one address against every one", []string{"127.0.0.1:80/tcp"}, "", []string{"80/tcp"}, fwk.Unschedulable, ErrReasonTaken + "127.0.0.1:80/tcp"},
		{"the second of three", []string{"82/tcp", "81/tcp", "80/tcp"}, "", []string{"81/tcp"}, fwk.Unschedulable, ErrReasonTaken + "81/tcp"},
		{"two of three: the first by number", []string{"82/tcp", "81/tcp", "80/tcp"}, "", []string{"82/tcp", "81/tcp"}, fwk.Unschedulable, ErrReasonTaken + "81/tcp"},
		{"reserved", []string{"80/tcp"}, "22/tcp,80/tcp", nil, fwk.UnschedulableAndUnresolvable, ErrReasonReserved + "80/tcp"},
		{"reserved at an address", []string{"9100/tcp"}, "127.0.0.1:9100/tcp", nil, fwk.UnschedulableAndUnresolvable, ErrReasonReserved + "9100/tcp"},
		{"in a reserved range", []string{"8005/udp"}, "8000-8010/udp", nil, fwk.UnschedulableAndUnresolvable, ErrReasonReserved + "8005/udp"},
		{"one held by a pod, one by the node", []string{"80/tcp", "90/tcp"}, "90/tcp", []string{"80/tcp"}, fwk.UnschedulableAndUnresolvable, ErrReasonReserved + "90/tcp"},
		{"an empty annotation reserves nothing", []string{"80/tcp"}, " ", nil, fwk.Success, ""},
		{"a malformed annotation", []string{"80/tcp"}, "22", nil, fwk.UnschedulableAndUnresolvable, ErrReasonMalformed},
		{"half of it malformed", []string{"80/tcp"}, "22/tcp,443/http", nil, fwk.UnschedulableAndUnresolvable, ErrReasonMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var pods [][]string
			if tc.holds != nil {
				pods = append(pods, tc.holds)
			}
			before := refused(t, tc.reason)
			status := filter(t, newPlugin(t), wanting(t, tc.pod...).Obj(), infoOf(t, keeping("n", tc.node).Obj(), pods...))
			if tc.reason != "" && refused(t, tc.reason) != before+1 {
				t.Error("the refusal is not counted by its reason")
			}
			if status.Code() != tc.code || status.Message() != tc.reason {
				t.Errorf("got %v %q, want %v %q", status.Code(), status.Message(), tc.code, tc.reason)
			}
		})
	}
}

// A terminating pod still has its ports, and gives them up when it is gone.
func TestTerminatingPodHoldsItsPorts(t *testing.T) {
	pl := newPlugin(t)
	leaving := wanting(t, "80/tcp").Name("leaving").UID("leaving").Node("n").Terminating().Obj()
	info := framework.NewNodeInfo(leaving)
	info.SetNode(keeping("n", "").Obj())
	pod := wanting(t, "80/tcp").Obj()
	if status := filter(t, pl, pod, info); status.Code() != fwk.Unschedulable {
		t.Fatalf("beside a pod that is terminating: %v", status)
	}
	must(t, info.RemovePod(klog.Background(), leaving))
	if status := filter(t, pl, pod, info); !status.IsSuccess() {
		t.Errorf("after it has gone: %v", status)
	}
}

// Preemption imagines the node without its pods: only where a pod is in the way is that of use, and what it imagines must not stick.
func TestPreemption(t *testing.T) {
	pl, pod := newPlugin(t), wanting(t, "80/tcp").Obj()
	info := infoOf(t, keeping("n", "").Obj(), []string{"80/tcp"}, []string{"81/tcp"})
	imagined := info.Snapshot()
	must(t, imagined.RemovePod(klog.Background(), info.GetPods()[0].GetPod()))
	for range 2 {
		if status := filter(t, pl, pod, info); status.Code() != fwk.Unschedulable {
			t.Errorf("the node as it is: %v", status)
		}
		if status := filter(t, pl, pod, imagined); !status.IsSuccess() {
			t.Errorf("the node without the pod: %v", status)
		}
	}
}

// Two schedulers, or a pod with nodeName, can give one port to two pods. The kubelet turns the second away; the port is not free for that.
func TestRegression_FirstPodToGoFreesThePortOfTheSecond(t *testing.T) {
	pl, pod := newPlugin(t), wanting(t, "80/tcp").Obj()
	info := infoOf(t, keeping("n", "").Obj(), []string{"80/tcp"}, []string{"80/tcp"})
	for len(info.GetPods()) > 0 {
		if status := filter(t, pl, pod, info); status.Code() != fwk.Unschedulable {
			t.Errorf("with %d pods on the port: %v", len(info.GetPods()), status)
		}
		must(t, info.RemovePod(klog.Background(), info.GetPods()[0].GetPod()))
	}
	if status := filter(t, pl, pod, info); !status.IsSuccess() {
		t.Errorf("with no pod left: %v", status)
	}
}

// A node that changes is looked at again.
func TestFilterAfterTheNodeChanges(t *testing.T) {
	pl, pod, info := newPlugin(t), wanting(t, "80/tcp").Obj(), infoOf(t, keeping("n", "").Obj())
	for _, tc := range []struct {
		annotation string
		want       fwk.Code
	}{
		{"22/tcp", fwk.Success},
		{"80/tcp", fwk.UnschedulableAndUnresolvable},
		{"", fwk.Success},
		{"80", fwk.UnschedulableAndUnresolvable},
		{"80/udp", fwk.Success},
	} {
		info.SetNode(keeping("n", tc.annotation).Obj())
		if status := filter(t, pl, pod, info); status.Code() != tc.want {
			t.Errorf("with the annotation %q: %v, want %v", tc.annotation, status, tc.want)
		}
	}
}

// What is known of nodes that are gone does not pile up.
func TestHoldersForgetNodesThatAreGone(t *testing.T) {
	pl, pod := newPlugin(t), wanting(t, "80/tcp").Obj()
	for i := range 100 {
		filter(t, pl, pod, infoOf(t, keeping("n"+strings.Repeat("x", i), "").Obj()))
	}
	if n := len(pl.holders.nodes); n > 3 {
		t.Errorf("%d nodes are known, of one there is", n)
	}
}

// The whole message: one reason a node, and the counts add up.
func TestMessage(t *testing.T) {
	pl, pod := newPlugin(t), wanting(t, "80/tcp", "53/udp").Obj()
	nodes := []*framework.NodeInfo{
		infoOf(t, keeping("n1", "").Obj(), []string{"80/tcp"}),
		infoOf(t, keeping("n2", "").Obj(), []string{"80/tcp", "53/udp"}),
		infoOf(t, keeping("n3", "").Obj(), []string{"53/udp"}, []string{"22/tcp"}),
		infoOf(t, keeping("n4", "22/tcp,80/tcp").Obj()),
		infoOf(t, keeping("n5", "http").Obj()),
	}
	statuses := framework.NewDefaultNodeToStatus()
	for _, n := range nodes {
		statuses.Set(n.Node().Name, filter(t, pl, pod, n))
	}
	fit := framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: framework.Diagnosis{NodeToStatus: statuses}}
	const want = "0/5 nodes are available: 1 node(s) didn't have free host port 80/tcp, 1 node(s) had a malformed annotation " +
		clusterview.ReservedHostPortsAnnotation + ", 1 node(s) reserved host port 80/tcp, 2 node(s) didn't have free host port 53/udp."
	if got := fit.Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t), wanting(t, "80/tcp").Obj())
}

// The filters of many nodes run at once.
func TestFilterOfManyNodesAtOnce(t *testing.T) {
	pl, pod := newPlugin(t), wanting(t, "80/tcp").Obj()
	state := framework.NewCycleState()
	if _, status := pl.PreFilter(t.Context(), state, pod, nil); !status.IsSuccess() {
		t.Fatal(status)
	}
	infos := []*framework.NodeInfo{infoOf(t, keeping("n1", "").Obj(), []string{"80/tcp"}), infoOf(t, keeping("n2", "").Obj())}
	codes := make(chan []fwk.Code)
	for range 8 {
		go func() {
			var got []fwk.Code
			for i := range 100 {
				got = append(got, pl.Filter(t.Context(), state, pod, infos[i%2]).Code())
			}
			codes <- got[:2]
		}()
	}
	for range 8 {
		if got := <-codes; !slices.Equal(got, []fwk.Code{fwk.Unschedulable, fwk.Success}) {
			t.Errorf("got %v", got)
		}
	}
}

// In the cycle of a pod group the scheduler puts pods on the nodes of its snapshot, and takes them away, without a new generation. They
// hold their ports meanwhile, and no longer.
func TestRegression_PodsOfAGroupShareAPort(t *testing.T) {
	pl, next := newPlugin(t), wanting(t, "80/tcp").Name("next").UID("next").Obj()
	snapshot := cache.NewSnapshot(nil, []*corev1.Node{keeping("n", "").Obj()})
	expect := func(step string, want fwk.Code) {
		t.Helper()
		info, err := snapshot.NodeInfos().Get("n")
		must(t, err)
		if status := filter(t, pl, next, info); status.Code() != want {
			t.Errorf("%s: %v, want %v", step, status, want)
		}
	}
	expect("at first", fwk.Success)
	for _, name := range []string{"a", "b"} {
		member := wanting(t, "80/tcp").Name(name).UID(name).Node("n").Obj()
		info, err := framework.NewPodInfo(member)
		must(t, err)
		must(t, snapshot.AssumePod(info))
		expect("beside "+name+" of the group", fwk.Unschedulable)
		must(t, snapshot.ForgetPod(klog.Background(), member))
		expect("when "+name+" is forgotten", fwk.Success)
	}
	udp, err := framework.NewPodInfo(wanting(t, "80/udp").Name("u").UID("u").Node("n").Obj())
	must(t, err)
	must(t, snapshot.AssumePod(udp))
	expect("beside one on another port", fwk.Success)
}
