// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {espalier.dev/placement: spread=topology.kubernetes.io/zone}
    spec:
      schedulerName: espalier-scheduler
      containers:
      - name: web
        image: web
        resources: {limits: {cpu: "1"}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}}
`

func (c *cluster) manifest(text string) *Manifest {
	c.Helper()
	m, err := ReadManifest(strings.NewReader(text), "ns")
	must(c, err)
	return m
}

func (c *cluster) simulate(manifest string, replicas int, change Change) *Simulation {
	c.Helper()
	m := &Manifest{}
	if manifest != "" {
		m = c.manifest(manifest)
	}
	s, err := Simulate(c.Context(), &c.Snapshot, shipped(c), change, m, replicas, func(int, int) {})
	must(c, err)
	return s
}

// zonesOf counts placed pods by the zone that their node's name begins with.
func zonesOf(s *Simulation) string {
	n := map[string]int{}
	for _, p := range s.Pods {
		zone, _, _ := strings.Cut(p.Node, "-")
		n[zone]++
	}
	return fmt.Sprint(n)
}

func TestSimulate(t *testing.T) {
	c := newCluster(t, 3, 1)
	s := c.simulate(web, -1, Change{})
	if got := zonesOf(s); got != "map[a:3 b:3]" || fmt.Sprint(s.Ignored) != "[Service]" {
		t.Errorf("six pods go to %s; ignored is %q", got, s.Ignored)
	}
	if len(s.Trees) != 1 || s.Trees[0].All.Pods != 6 {
		t.Errorf("the trees are %+v", s.Trees)
	}
	if got := zonesOf(c.simulate(web, 20, Change{})); got != "map[:4 a:12 b:4]" {
		t.Errorf("20 pods in 16 places go to %s", got)
	}
	if got := zonesOf(c.simulate(web, 4, Change{Cordon: []string{"b-1"}})); got != "map[a:4]" {
		t.Errorf("with zone b cordoned, four pods go to %s", got)
	}
	if got := zonesOf(c.simulate(web, 9, Change{Add: []AddNodes{{2, "a-1", map[string]string{"topology.kubernetes.io/zone": "c"}}}})); !strings.Contains(got, "b:3") {
		t.Errorf("with two nodes in zone c, nine pods go to %s", got)
	}
}

// What a Deployment of the cluster has already is counted, and not placed again.
func TestSimulateMoreReplicas(t *testing.T) {
	c := newCluster(t, 2, 2)
	first := c.simulate(web, 2, Change{})
	if len(first.Pods) != 2 {
		t.Fatalf("%+v", first.Pods)
	}
	c.deployment("web", *c.manifest(web).Workloads[0].trimmed(), "a-1", "a-2", "a-1")
	s := c.simulate(web, 6, Change{})
	if got := zonesOf(s); got != "map[b:3]" || s.Trees[0].All.Pods != 6 {
		t.Errorf("three more pods go to %s; all are %d: %+v", got, s.Trees[0].All.Pods, s.Pods)
	}
	changed := strings.Replace(web, "image: web", "image: other", 1)
	if s := c.simulate(changed, 4, Change{}); zonesOf(s) != "map[a:2 b:2]" || s.Trees[0].All.Pods != 4 || s.Trees[0].All.All != 7 {
		t.Errorf("four pods of a new revision go to %s; of %d and %d", zonesOf(s), s.Trees[0].All.Pods, s.Trees[0].All.All)
	}
}

// Policies of the manifest are in force, in the place of those of the same name.
func TestSimulateAPolicy(t *testing.T) {
	c := newCluster(t, 2, 2)
	policy := func(strategy string) string {
		return `
---
apiVersion: placement.espalier.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: tiers}
spec: {podSelector: {matchLabels: {app: web}}, mode: Override, levels: [{topologyKey: topology.kubernetes.io/zone` + strategy + `}]}
`
	}
	c.Add(c.manifest(policy("")).Policies[0])
	shares := ", shares: [{value: a, share: 3}, {value: b, share: 1}]"
	if got := zonesOf(c.simulate(web+policy(shares), 4, Change{})); got != "map[a:3 b:1]" {
		t.Errorf("with shares of 3 and 1, four pods go to %s", got)
	}
	if got := zonesOf(c.simulate(web, 4, Change{})); got != "map[a:2 b:2]" {
		t.Errorf("without shares, four pods go to %s", got)
	}
}

// A drained node has pods of everybody. Those of other schedulers are not simulated, those of DaemonSets stay, and what is on its way out, or
// belongs to nobody, is gone.
func TestSimulateADrainOfEverything(t *testing.T) {
	c := newCluster(t, 2, 1)
	foreign := template()
	foreign.Spec.SchedulerName = "default-scheduler"
	c.deployment("web", template(), "a-1", "b-1")
	c.deployment("dns", foreign, "b-1")
	daemon := st.MakePod().Namespace("ns").Name("proxy").UID("proxy").Node("b-1").OwnerReference("ds", appsv1.SchemeGroupVersion.WithKind("DaemonSet")).SchedulerName(ours).Obj()
	alone := st.MakePod().Namespace("ns").Name("alone").UID("alone").Node("b-1").SchedulerName(ours).Obj()
	leaving := snapshot.Of[*corev1.Pod](&c.Snapshot)[1].DeepCopy()
	leaving.Name, leaving.UID, leaving.DeletionTimestamp = "leaving", "leaving", &metav1.Time{Time: c.Taken}
	for _, p := range []*corev1.Pod{daemon, alone, leaving} {
		c.Add(p)
	}
	s := c.simulate("", -1, Change{Drain: []string{"b-1"}})
	if len(s.Pods) != 1 || s.Pods[0].Why != WhyDrained || !strings.HasPrefix(s.Pods[0].Node, "a-") || len(s.Trees) != 1 {
		t.Errorf("got %+v", s.Pods)
	}
	if len(s.Notes) != 2 || !strings.Contains(s.Notes[0], "1 pods on the drained nodes have no controller") || !strings.Contains(s.Notes[1], `1 pods of the scheduler "default-scheduler"`) {
		t.Errorf("it is noted %q", s.Notes)
	}
}

// A pod of a drained node is one of its workload, and not placed twice.
func TestSimulateADrainAndMoreReplicas(t *testing.T) {
	c := newCluster(t, 2, 2)
	c.deployment("web", *c.manifest(web).Workloads[0].trimmed(), "a-1", "a-2", "b-1")
	if s := c.simulate(web, 4, Change{Drain: []string{"b-1"}}); len(s.Pods) != 2 || s.Trees[0].All.Pods != 4 {
		t.Errorf("got %+v, and %d pods in all", s.Pods, s.Trees[0].All.Pods)
	}
}

// Pods that were pending take their room first, and are not placed again for their workload.
func TestSimulatePendingPods(t *testing.T) {
	c := newCluster(t, 1)
	c.deployment("web", *c.manifest(web).Workloads[0].trimmed(), "a-1", "a-1", "a-1", "a-1", "", "")
	gated := st.MakePod().Namespace("ns").Name("gated").UID("gated").SchedulerName(ours).SchedulingGates([]string{"g"}).Obj()
	c.Add(gated)
	s := c.simulate(web, 7, Change{Add: []AddNodes{{1, "a-1", nil}}})
	why := ""
	for _, p := range s.Pods {
		why += p.Why + " "
	}
	if why != "Pending Pending Manifest " || s.Pending() != 0 || s.Trees[0].All.Pods != 7 {
		t.Errorf("got %+v", s.Pods)
	}
}

// What a restart writes into a template makes no other revision; what the manifest leaves open is as in the cluster; and a new
// revision stands beside the old one.
func TestSimulateRevisions(t *testing.T) {
	c := newCluster(t, 2)
	restarted := *c.manifest(web).Workloads[0].trimmed()
	restarted.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
	c.deployment("web", restarted, "a-1", "a-2")
	five := int32(5)
	snapshot.Of[*appsv1.Deployment](&c.Snapshot)[0].Spec.Replicas = &five
	if s := c.simulate(strings.Replace(web, "replicas: 6", "paused: false", 1), -1, Change{}); len(s.Pods) != 3 || len(s.Notes) != 0 {
		t.Errorf("got %+v, noted %q", s.Pods, s.Notes)
	}
	if s := c.simulate(strings.Replace(web, "image: web", "image: new", 1), 2, Change{}); len(s.Pods) != 2 || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "beside 2 of the revision before") {
		t.Errorf("got %+v, noted %q", s.Pods, s.Notes)
	}
}

// A StatefulSet goes on with its numbers, and with the revision that it has.
func TestSimulateAStatefulSet(t *testing.T) {
	text := strings.NewReplacer("Deployment", "StatefulSet", "replicas: 6", "replicas: 6, serviceName: web").Replace(web)
	text = strings.Replace(text, "  replicas: 6, serviceName: web", "  replicas: 6\n  serviceName: web\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]", 1)
	c := newCluster(t, 1, 1, 1)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web"}, Spec: appsv1.StatefulSetSpec{Template: *c.manifest(text).Workloads[0].trimmed()}, Status: appsv1.StatefulSetStatus{UpdateRevision: "web-1"}}
	c.Add(set)
	for i := range 3 {
		p := nextPod(&c.Snapshot, set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &set.Spec.Template, revisionLabel(set))
		number(p, "web", nil, i)
		p.UID, p.Spec.NodeName, p.Status.Phase = types.UID(p.Name), "a-1", corev1.PodRunning
		c.Add(p)
	}
	lacks, err := c.manifest(text).Workloads[0].lacks(&c.Snapshot, -1)
	must(t, err)
	if len(lacks.pods) != 3 || lacks.pods[0].Name != "web-3" || lacks.pods[2].Labels["apps.kubernetes.io/pod-index"] != "5" || lacks.pods[0].Labels["controller-revision-hash"] != "web-1" || len(lacks.objects) != 6 { // a claim and its volume each
		t.Fatalf("got %+v and %d objects", lacks.pods, len(lacks.objects))
	}
	if s := c.simulate(text, 7, Change{}); zonesOf(s) != "map[b:2 c:2]" || s.Trees[0].All.Pods != 7 {
		t.Errorf("four more of three in zone a go to %s: %+v", zonesOf(s), s.Pods)
	}
}

// The shares of a StatefulSet count from its first index, also where the cluster does not have it yet, and for each of several.
func TestSimulateShares(t *testing.T) {
	text := strings.NewReplacer("Deployment", "StatefulSet", "replicas: 6", "replicas: 1\n  serviceName: web\n  ordinals: {start: 1}",
		"spread=topology.kubernetes.io/zone", "spread=topology.kubernetes.io/zone;weight.a=70;weight.b=30").Replace(web)
	c := newCluster(t, 1, 1)
	two := text + "---" + strings.NewReplacer("name: web", "name: db", "start: 1", "start: 102").Replace(text)
	for replicas, want := range map[int]string{1: "map[a:2]", 2: "map[a:2 b:2]"} {
		if got := zonesOf(c.simulate(two, replicas, Change{})); got != want {
			t.Errorf("%d pods of each go to %s, want %s", replicas, got, want)
		}
	}
}

// The namespace of a manifest is there with it.
func TestSimulateANamespace(t *testing.T) {
	c := newCluster(t, 1)
	everywhere := `
---
apiVersion: placement.espalier.dev/v1alpha1
kind: ClusterPlacementPolicy
metadata: {name: all}
spec: {namespaceSelector: {matchLabels: {team: x}}, podSelector: {}, levels: [{topologyKey: topology.kubernetes.io/zone}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: new, labels: {team: x}}
`
	manifest := strings.Replace(web, "{name: web}\nspec:\n  replicas", "{name: web, namespace: new}\nspec:\n  replicas", 1) + everywhere
	s := c.simulate(strings.Replace(manifest, "{espalier.dev/placement: spread=topology.kubernetes.io/zone}", "{}", 1), 2, Change{})
	if s.Pending() != 0 || len(s.Trees) != 1 || !strings.HasPrefix(s.Trees[0].PlacedBy, "clusterpolicy/all") {
		t.Errorf("got %+v", s)
	}
}

// Who interrupts a simulation gets no answer, and no wrong one.
func TestInterruptedSimulation(t *testing.T) {
	c := newCluster(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Simulate(ctx, &c.Snapshot, shipped(t), Change{}, c.manifest(web), 8, func(done, _ int) {
		if done == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestTooManyPods(t *testing.T) {
	c := newCluster(t, 1)
	if _, err := c.manifest(web).Workloads[0].lacks(&c.Snapshot, 2000000000); err == nil || !strings.Contains(err.Error(), "simulate 100000 at most") {
		t.Errorf("got %v", err)
	}
}
