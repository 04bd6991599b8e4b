// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"os"
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
)

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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// zone adds nodes: zone "a" of 2 has a-1 and a-2.
func (c *cluster) zone(name string, nodes int) {
	for i := range nodes {
		node := fmt.Sprintf("%s-%d", name, i+1)
		c.Add(st.MakeNode().Name(node).UID(node).Label(corev1.LabelTopologyZone, name).Label(corev1.LabelHostname, node).
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
