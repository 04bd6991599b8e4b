// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestNoTree(t *testing.T) {
	c := newCluster(t, 1)
	foreign, daemon := template(), template()
	foreign.Spec.SchedulerName = "default-scheduler"
	daemon.Annotations = map[string]string{"espalier.dev/placement": "spread="}
	c.deployment("foreign", foreign)
	c.deployment("malformed", daemon)
	opened := c.open()
	for name, want := range map[string]string{
		"foreign":   `its schedulerName is "default-scheduler", and the configuration has ["espalier-scheduler"]`,
		"malformed": "annotation espalier.dev/placement",
		"none":      `there is no deployment/none in namespace "ns"`,
	} {
		if _, err := opened.Tree(t.Context(), Ref{"ns", "Deployment", name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", name, err, want)
		}
	}
}

func TestParseRef(t *testing.T) {
	for text, want := range map[string]string{"deployment/web": "deployment/web", "deploy/web": "deployment/web", "Deployments/web": "deployment/web", "sts/db": "statefulset/db", "rs/x": "replicaset/x", "rc/x": "replicationcontroller/x"} {
		if got, err := ParseRef("ns", text); err != nil || got.String() != want || got.Namespace != "ns" {
			t.Errorf("%q is %v, error %v", text, got, err)
		}
	}
	for _, text := range []string{"", "web", "deployment/", "job/x", "/x"} {
		if got, err := ParseRef("ns", text); err == nil {
			t.Errorf("%q is %v, and no error", text, got)
		}
	}
}

// A node on which a workload keeps failing comes last in its tree, by the record that its scheduler has written: as it was when the snapshot was taken.
func TestFaultyNode(t *testing.T) {
	for name, ago := range map[string]time.Duration{"the cluster": 0, "a snapshot of yesterday": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Taken = time.Now().Add(-ago)
			c.zone("a", 3)
			c.deployment("web", template(), "a-1")
			c.deployment("other", template(), "a-1")
			c.failures("ns/Deployment.apps/web", "a-2", 5)
			opened := c.open()
			for workload, want := range map[string]string{"web": "a-3 fits; a-1 fits; a-2 fits, faulty (5 failures), 5 unforgiven", "other": "a-2 fits; a-3 fits; a-1 fits"} {
				tree, err := opened.Tree(t.Context(), Ref{"ns", "Deployment", workload})
				must(t, err)
				var nodes []string
				for _, node := range tree.All.Below[0].Below {
					nodes = append(nodes, node.Name+" "+node.State)
				}
				if got := strings.Join(nodes, "; "); got != want {
					t.Errorf("the nodes of %s are %s, want %s", workload, got, want)
				}
			}
		})
	}
}

// After a restart the ReplicaSets of before and after differ in nothing that a snapshot compares.
func TestNextPodIsOfTheLatestRevision(t *testing.T) {
	c := newCluster(t)
	c.deployment("web", template())
	old := snapshot.Of[*appsv1.ReplicaSet](&c.Snapshot)[0]
	old.Annotations = map[string]string{revision: "9"}
	latest := old.DeepCopy()
	latest.Name, latest.UID, latest.Annotations = "web-2", "web-2", map[string]string{revision: "10", restartedAt: "now"}
	latest.Spec.Template.Annotations[restartedAt] = "now"
	latest.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "2"
	c.Add(latest)
	pod, err := NextPod(&c.Snapshot, Ref{"ns", "Deployment", "web"})
	must(t, err)
	if !metav1.IsControlledBy(pod, latest) {
		t.Errorf("it is of %v, want %s", pod.OwnerReferences, latest.Name)
	}
}

func TestBalance(t *testing.T) {
	c := newCluster(t, 2, 2)
	foreign, malformed := template(), template()
	foreign.Spec.SchedulerName = "default-scheduler"
	malformed.Annotations = map[string]string{"espalier.dev/placement": "spread="}
	c.deployment("even", template(), "a-1", "b-1")
	c.deployment("uneven", template(), "a-1", "a-1", "a-2", "a-1")
	c.deployment("foreign", foreign, "a-1")
	c.deployment("malformed", malformed, "b-1")
	c.deployment("new", template())
	b, err := c.open().Balance(t.Context(), "ns", func(int, int) {})
	must(t, err)
	got := ""
	for _, w := range b.Workloads {
		got += fmt.Sprintf("%s %d/%d %v %t\n", w.Workload, w.Misplaced, w.Pods, w.ByLevel, w.Note != "")
	}
	want := "deployment/uneven 3/4 [{topology.kubernetes.io/zone 2} {node 1}] false\n" +
		"deployment/even 0/2 [{topology.kubernetes.io/zone 0} {node 0}] false\n" +
		"deployment/malformed 0/0 [] true\n" +
		"deployment/new 0/0 [{topology.kubernetes.io/zone 0} {node 0}] false\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if b, err := c.open().Balance(t.Context(), "other", func(int, int) {}); err != nil || len(b.Workloads) != 0 {
		t.Errorf("in another namespace: %+v, %v", b, err)
	}
}

// Workloads with the same needs may be told apart all the same: by levels that leave nodes out, or by who refuses their pods.
func TestBalanceTellsWorkloadsApart(t *testing.T) {
	c := newCluster(t, 1, 1)
	c.Add(st.MakeNode().Name("x").UID("x").Label(corev1.LabelHostname, "x").Capacity(map[corev1.ResourceName]string{"cpu": "4", "memory": "8Gi", "pods": "10"}).Obj())
	refused, excluding, plain := template(), template(), template()
	refused.Spec.RuntimeClassName = new("none")
	excluding.Annotations = map[string]string{"espalier.dev/placement": "spread=topology.kubernetes.io/zone;nodesWithoutKey=Exclude"}
	plain.Annotations = map[string]string{"espalier.dev/placement": "spread=kubernetes.io/hostname"}
	c.deployment("a-refused", refused, "a-1")
	c.deployment("b-excluding", excluding, "a-1", "b-1")
	c.deployment("c-plain", plain, "a-1", "a-1", "b-1", "b-1")
	b, err := c.open().Balance(t.Context(), "", func(int, int) {})
	must(t, err)
	if got := fmt.Sprintf("%s %d", b.Workloads[0].Workload, b.Workloads[0].Misplaced); got != "deployment/c-plain 1" {
		t.Errorf("the least even is %s of %+v", got, b.Workloads)
	}
}

const ours = "espalier-scheduler"

// cluster is a snapshot that tests fill.
type cluster struct {
	testing.TB
	snapshot.Snapshot
}

// newCluster has zones a, b and so on, with so many nodes each.
func newCluster(t testing.TB, zones ...int) *cluster {
	c := &cluster{TB: t}
	c.Taken = time.Now()
	c.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	for z, nodes := range zones {
		c.zone(string(rune('a'+z)), nodes)
	}
	return c
}

var must = placementtest.Must

// zone adds nodes: zone "a" of 2 has a-1 and a-2.
func (c *cluster) zone(name string, nodes int) {
	for i := range nodes {
		node := fmt.Sprintf("%s-%d", name, i+1)
		c.Add(st.MakeNode().Name(node).UID(node).Label(corev1.LabelTopologyZone, name).Label(corev1.LabelHostname, node).Label("one", "high").
			Capacity(map[corev1.ResourceName]string{"cpu": "4", "memory": "8Gi", "pods": "10"}).Obj())
	}
}

// deployment adds one with a ReplicaSet, and a pod on each of the nodes.
func (c *cluster) deployment(name string, template corev1.PodTemplateSpec, on ...string) {
	template.Labels = map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: appsv1.DeploymentSpec{Template: *template.DeepCopy()}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + "-1", UID: types.UID(name + "-1")}, Spec: appsv1.ReplicaSetSpec{Template: *template.DeepCopy()}}
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	set.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "1"
	c.Add(d)
	c.Add(set)
	for i, node := range on {
		p := nextPod(&c.Snapshot, set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &set.Spec.Template, nil)
		p.Name, p.Spec.NodeName, p.Status.Phase = fmt.Sprintf("%s-1-%d", name, i), node, corev1.PodRunning
		if node == "" {
			p.Status.Phase = corev1.PodPending
		}
		p.UID = types.UID(p.Name)
		c.Add(p)
	}
}

// failures adds the record of a scheduler: of revision 1 of a workload so many pods have failed on a node, one a second.
func (c *cluster) failures(workload, node string, n int) {
	history := failure.NodeHistory{Node: node}
	for i := range n {
		history.Failures = append(history.Failures, failure.Failure{Pod: fmt.Sprint(i), Kind: "ErrImagePull", At: c.Taken.Add(time.Duration(i-n) * time.Second)})
	}
	r := record.New()
	r.Revisions = []record.Revision{{RevisionHistory: failure.RevisionHistory{Workload: workload, Revision: "1", Nodes: []failure.NodeHistory{history}}}}
	text, err := r.Encode(record.Limit)
	must(c, err)
	c.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: ours + record.Suffix}, Data: map[string]string{record.Key: string(text)}})
}

// template is that of pods spread over zones and hosts.
func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"espalier.dev/placement": "spread=topology.kubernetes.io/zone"}},
		Spec:       st.MakePod().SchedulerName(ours).Req(map[corev1.ResourceName]string{"cpu": "1"}).Obj().Spec,
	}
}

// shipped is the configuration that is shipped.
func shipped(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("../../manifests/base/scheduler-config.yaml")
	must(t, err)
	return text
}

func (c *cluster) open() *Cluster {
	c.Helper()
	opened, err := Open(c.Context(), &c.Snapshot, shipped(c), AllNodes)
	must(c, err)
	return opened
}
