// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var clusters = flag.Int("clusters", 200, "in how many random clusters a simulation is compared with what the scheduler does")

// calmCluster is what there is before a simulation: nodes of all sorts, workloads of all kinds with pods that run, and pods that wait.
type calmCluster struct {
	nodes   []*corev1.Node
	sets    []*appsv1.ReplicaSet
	running []*corev1.Pod
	waiting []*corev1.Pod
}

// drawCluster draws one. Pods of high priority are not among them: they would have others make way, which is not simulated. Nor are pods with
// preferences of their own: among nodes that nothing tells apart to them kube-scheduler takes any.
func drawCluster(r *rand.Rand) *calmCluster {
	c := &calmCluster{}
	for i := range 3 + r.IntN(14) {
		n := newNode(i, nodeName(i))
		switch r.IntN(8) {
		case 0:
			delete(n.Labels, zone)
		case 1:
			delete(n.Labels, rack)
		case 2:
			n.Spec.Unschedulable = true
		case 3:
			n.Spec.Taints = []corev1.Taint{{Key: "going", Effect: corev1.TaintEffectPreferNoSchedule}}
		case 4:
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1")
		}
		c.nodes = append(c.nodes, n)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(kinds)), func(kind string) bool { return kind == "urgent" || kinds[kind].odd })
	for i := range 1 + r.IntN(4) {
		app, kind := fmt.Sprint("app-", i), names[r.IntN(len(names))]
		set := replicaSet(app, app+"-1", "1")
		c.sets = append(c.sets, set)
		for j := range r.IntN(20) {
			pod := podOf(fmt.Sprintf("%s-%d", app, j), kind, app, shipped, set)
			pod.CreationTimestamp = metav1.NewTime(time.Unix(int64(1000*i+j), 0))
			if r.IntN(3) == 0 {
				pod.Spec.NodeName, pod.Status.Phase = c.nodes[r.IntN(len(c.nodes))].Name, corev1.PodRunning
				c.running = append(c.running, pod)
			} else {
				c.waiting = append(c.waiting, pod)
			}
		}
	}
	return c
}

// objects are all but the pods that wait.
func (c *calmCluster) objects() []runtime.Object {
	all := []runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "sandboxed"}, Handler: "sandbox"},
	}
	for _, n := range c.nodes {
		all = append(all, n.DeepCopy())
	}
	for _, s := range c.sets {
		all = append(all, s.DeepCopy())
	}
	for _, p := range c.running {
		all = append(all, p.DeepCopy())
	}
	return all
}

// simulate returns what kubectl espalier says of the pods that wait.
func (c *calmCluster) simulate(t *testing.T) []inspect.Placed {
	t.Helper()
	s := &snapshot.Snapshot{Taken: time.Now()}
	for _, o := range c.objects() {
		s.Add(o)
	}
	for _, p := range c.waiting {
		s.Add(p.DeepCopy())
	}
	simulated, err := inspect.Simulate(t.Context(), s, manifests.SchedulerConfig, inspect.Change{}, &inspect.Manifest{}, -1, func(int, int) {})
	must(t, err)
	return simulated.Pods
}

// schedule has the scheduler decide the pods in the same order, each when the one before is decided, and returns the node of each. One that
// fits nowhere is removed, so that it is not tried again beside those that come.
func (c *calmCluster) schedule(t *testing.T, order []inspect.Placed) map[string]string {
	t.Helper()
	server := newAPIServer()
	defer server.close()
	for _, o := range c.objects() {
		must(t, server.store.Add(o))
	}
	r := start(t, server, nil)
	r.run()
	defer r.end()
	on := make(map[string]string)
	for _, placed := range order {
		at := slices.IndexFunc(c.waiting, func(p *corev1.Pod) bool { return p.Name == placed.Name })
		api := server.CoreV1().Pods(namespace)
		_, err := api.Create(t.Context(), c.waiting[at].DeepCopy(), metav1.CreateOptions{})
		must(t, err)
		for begun := time.Now(); ; time.Sleep(time.Millisecond) {
			pod, err := api.Get(t.Context(), placed.Name, metav1.GetOptions{})
			must(t, err)
			if on[placed.Name] = pod.Spec.NodeName; pod.Spec.NodeName != "" {
				break
			}
			if slices.ContainsFunc(pod.Status.Conditions, func(is corev1.PodCondition) bool {
				return is.Type == corev1.PodScheduled && is.Status == corev1.ConditionFalse
			}) {
				must(t, api.Delete(t.Context(), placed.Name, metav1.DeleteOptions{}))
				break
			}
			if time.Since(begun) > calming {
				t.Fatalf("nothing is decided about %s", describe(pod))
			}
		}
	}
	return on
}

// What a simulation says of pods that wait is what the scheduler does with them, each of them.
func TestSimulationIsWhatTheSchedulerDoes(t *testing.T) {
	from, bound, refused := placementtest.Seed(), 0, 0
	for i := range *clusters {
		c := drawCluster(rand.New(rand.NewPCG(from, uint64(i))))
		simulated := c.simulate(t)
		if len(simulated) != len(c.waiting) {
			t.Fatalf("cluster %d: %d pods are simulated, and %d wait", i, len(simulated), len(c.waiting))
		}
		on := c.schedule(t, simulated)
		for _, p := range simulated {
			if on[p.Name] != p.Node {
				at := slices.IndexFunc(c.waiting, func(w *corev1.Pod) bool { return w.Name == p.Name })
				t.Errorf("cluster %d of seed %d: %s %s is on %q, and was simulated on %q: %s", i, from, p.Name, describe(c.waiting[at]), on[p.Name], p.Node, p.Message)
				break // those behind it differ for this reason
			}
			if p.Node == "" {
				refused++
			} else {
				bound++
			}
		}
	}
	t.Logf("in %d clusters %d pods were bound and %d refused as simulated", *clusters, bound, refused)
	if bound == 0 || refused == 0 {
		t.Error("not both were tried")
	}
}
