// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// oursAlone has our plugins without any in-tree but the one that reads a node's
// name, so that what is measured and watched is ours.
const oursAlone = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled:
      - {name: PreassignedFirst}
      - {name: NodeAffinity}
      - {name: Preferences}
      - {name: NodePlugins}
      - {name: Constraints}
      - {name: Platform}
      - {name: HostPorts}
      - {name: DomainLimits}
      - {name: FaultyNode, weight: 30}
      - {name: SpreadTree, weight: 10000}
      - {name: DefaultBinder}
      disabled: [{name: "*"}]
`

// watched is a snapshot that knows of which nodes anything was asked.
type watched struct {
	*cache.Snapshot
	all   []fwk.NodeInfo
	asked map[string]bool
}

func watch(snapshot *cache.Snapshot) (*watched, error) {
	w := &watched{Snapshot: snapshot, asked: make(map[string]bool)}
	all, err := snapshot.List()
	for _, n := range all {
		w.all = append(w.all, &watchedNode{n, n.Node().Name, w})
	}
	return w, err
}

func (w *watched) NodeInfos() fwk.NodeInfoLister { return w }
func (w *watched) List() ([]fwk.NodeInfo, error) { return w.all, nil }
func (w *watched) Get(name string) (fwk.NodeInfo, error) {
	for _, n := range w.all {
		if n.(*watchedNode).name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("there is no node %q", name)
}

type watchedNode struct {
	fwk.NodeInfo
	name string
	of   *watched
}

func (n *watchedNode) Node() *corev1.Node     { n.of.asked[n.name] = true; return n.NodeInfo.Node() }
func (n *watchedNode) GetPods() []fwk.PodInfo { n.of.asked[n.name] = true; return n.NodeInfo.GetPods() }
func (n *watchedNode) GetGeneration() int64 {
	n.of.asked[n.name] = true
	return n.NodeInfo.GetGeneration()
}
func (n *watchedNode) Snapshot() fwk.NodeInfo {
	n.of.asked[n.name] = true
	return n.NodeInfo.Snapshot()
}

// crowd is n nodes with a pod of the workload web on each.
func crowd(n int) *cache.Snapshot {
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		nodes = append(nodes, st.MakeNode().Name(name).Label("zone", fmt.Sprint(i%3)).Obj())
		pods = append(pods, st.MakePod().Namespace("ns").Name(name).UID(name).Label(clusterview.WorkloadLabel, "web").Node(name).Obj())
	}
	return cache.NewSnapshot(pods, nodes)
}

const pin = "n00042"

// preassignedPod is a pod that asks for something of every plugin that can be asked
// without a look at other nodes. A limit cannot: it is about the pods of a domain.
func preassignedPod(daemon bool) *corev1.Pod {
	p := st.MakePod().Namespace("ns").Name("p").UID("p").Label(clusterview.WorkloadLabel, "web").
		Annotation(clusterview.PlacementAnnotation, "spread=zone").
		Annotation(clusterview.ConstraintsAnnotation, "node.labels.zone==0").
		HostPort(8080).NodeAffinityIn(metav1.ObjectNameField, []string{pin}, st.NodeSelectorTypeMatchFields)
	if daemon {
		p.OwnerReference("ds", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"})
	}
	return p.Obj()
}

// confirm leads a pod through the cycle that the scheduler gives it, and returns the
// nodes that it looked at.
func confirm(ctx context.Context, tb testing.TB, f framework.Framework, pod *corev1.Pod) []string {
	tb.Helper()
	state := framework.NewCycleState()
	result, status, _ := f.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() || result.AllNodes() {
		tb.Fatalf("PreFilter: %v, %v", result, status)
	}
	var fit []fwk.NodeInfo
	names := result.NodeNames.UnsortedList()
	for _, name := range names {
		node, err := f.SnapshotSharedLister().NodeInfos().Get(name)
		if err != nil {
			tb.Fatal(err)
		}
		if status := f.RunFilterPluginsWithNominatedPods(ctx, state, pod, node); !status.IsSuccess() {
			tb.Fatalf("Filter: %v", status)
		}
		fit = append(fit, node)
	}
	// The scheduler ranks nothing where one node fits. Nothing would be lost if it did.
	if status := f.RunPreScorePlugins(ctx, state, pod, fit); !status.IsSuccess() {
		tb.Fatalf("PreScore: %v", status)
	}
	if status := f.RunReservePluginsReserve(ctx, state, pod, names[0]); !status.IsSuccess() {
		tb.Fatalf("Reserve: %v", status)
	}
	return names
}

// What the benchmark below measures, as a fact: no other node is looked at, so that
// it does not matter how many there are.
func TestPreassignedPodsAreConfirmedOnTheirNodeAlone(t *testing.T) {
	for _, daemon := range []bool{false, true} {
		t.Run(fmt.Sprint("daemon=", daemon), func(t *testing.T) {
			nodes, err := watch(crowd(100))
			if err != nil {
				t.Fatal(err)
			}
			ctx, f := profileOf(t, oursAlone, nodes)
			if got := confirm(ctx, t, f, preassignedPod(daemon)); !slices.Equal(got, []string{pin}) {
				t.Errorf("looked for room on %q", got)
			}
			if len(nodes.asked) != 1 || !nodes.asked[pin] {
				t.Errorf("%d nodes were looked at: %v", len(nodes.asked), nodes.asked)
			}
		})
	}
}

func BenchmarkPreassigned(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint("nodes=", n), func(b *testing.B) {
			ctx, f := profileOf(b, oursAlone, crowd(n))
			pod := preassignedPod(false)
			b.ReportAllocs()
			for b.Loop() {
				confirm(ctx, b, f, pod)
			}
		})
	}
}
