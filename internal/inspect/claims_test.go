// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// database adds a StatefulSet with volumes, and its first pods on nodes, with their claims unbound.
func (c *cluster) database(on ...string) {
	labels := map[string]string{"app": "db"}
	pods := template()
	pods.Labels = labels
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "db"}, Spec: appsv1.StatefulSetSpec{
		Template: pods, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
	}}
	c.Add(set)
	for i, node := range on {
		p := nextPod(&c.Snapshot, set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &set.Spec.Template, nil)
		number(p, set.Name, nil, i)
		p.UID, p.Spec.NodeName, p.Status.Phase = types.UID(p.Name), node, corev1.PodRunning
		c.Add(p)
	}
}

// The claims of the next pod come with it: it is drawn without them, and says so.
func TestClaimsThatAreNotThereYet(t *testing.T) {
	c := newCluster(t, 2, 1)
	c.database("a-1", "a-2")
	opened := c.open()
	tree, err := opened.Tree(t.Context(), Ref{"ns", "StatefulSet", "db"})
	must(t, err)
	if tree.All.Pods != 2 || len(tree.Notices) != 1 || !strings.Contains(tree.Notices[0], "The claim data-db-2 does not exist.") {
		t.Errorf("%d pods, notices %q", tree.All.Pods, tree.Notices)
	}
	b, err := opened.Balance(t.Context(), "ns", func(int, int) {})
	must(t, err)
	if len(b.Workloads) != 1 || b.Workloads[0].Pods != 2 || b.Workloads[0].Misplaced != 1 || b.Workloads[0].Note != "" {
		t.Errorf("it stands so: %+v", b.Workloads)
	}
}

// A pod with an ephemeral volume is explained, and one whose claim nobody makes is a problem of its manifest.
func TestClaimsOfPods(t *testing.T) {
	c := newCluster(t, 1)
	pods := template()
	pods.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}}}
	c.deployment("web", pods, "a-1")
	c.Add(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1-0-scratch"}})
	e, err := c.open().Explain(t.Context(), "ns", "web-1-0")
	if err != nil || len(e.Path) != 2 {
		t.Errorf("got %+v, %v", e, err)
	}
	const pod = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns, annotations: {espalier.dev/placement: spread=topology.kubernetes.io/zone}}
spec:
  schedulerName: espalier-scheduler
  containers: [{name: c, image: i}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: mine}}]
`
	const claim = `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mine, namespace: ns}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: late}
`
	for text, want := range map[string]bool{pod: true, pod + claim: false} {
		l, err := LintManifest(t.Context(), &c.Snapshot, shipped(t), c.manifest(text))
		must(t, err)
		missing := len(l.Objects[0].Problems) > 0 && strings.Contains(l.Objects[0].Problems[0], `persistentvolumeclaim "mine" not found`)
		if missing != want {
			t.Errorf("problems %q, want a missing claim: %t", l.Objects[0].Problems, want)
		}
	}
}

// A claim of a manifest is bound before its pod is placed, unless its class waits for the pod. It is bound to the volume that it names.
func TestClaimsOfAManifest(t *testing.T) {
	class := func(name string, mode storagev1.VolumeBindingMode, isDefault string) *storagev1.StorageClass {
		return &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Annotations: map[string]string{snapshot.DefaultClassAnnotation: isDefault}},
			Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode,
		}
	}
	const text = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns}
spec:
  schedulerName: espalier-scheduler
  containers: [{name: c, image: i}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: mine}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mine, namespace: ns}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, SPEC}
`
	for name, tc := range map[string]struct{ spec, isDefault, node, message string }{
		"no class, and no default":       {"volumeMode: Filesystem", "false", "a-1", ""},
		"no class, and one that waits":   {"volumeMode: Filesystem", "true", "", "didn't find available persistent volumes to bind"},
		"a class that does not wait":     {"storageClassName: now", "true", "a-1", ""},
		"a class that waits":             {"storageClassName: late", "false", "", "didn't find available persistent volumes to bind"},
		"a volume that is on no node":    {"storageClassName: late, volumeName: nowhere", "false", "", "didn't match PersistentVolume's node affinity"},
		"a volume that is not there yet": {"storageClassName: late, volumeName: other", "false", "a-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			c.Add(class("late", storagev1.VolumeBindingWaitForFirstConsumer, tc.isDefault))
			c.Add(class("now", storagev1.VolumeBindingImmediate, "false"))
			c.Add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}, Spec: corev1.PersistentVolumeSpec{
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gone", Operator: corev1.NodeSelectorOpExists}},
				}}}},
			}})
			s := c.simulate(strings.ReplaceAll(text, "SPEC", tc.spec), -1, Change{})
			if len(s.Pods) != 1 || s.Pods[0].Node != tc.node || !strings.Contains(s.Pods[0].Message, tc.message) {
				t.Errorf("it is placed as %+v", s.Pods)
			}
		})
	}
}
