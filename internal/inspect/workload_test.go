// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

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
	if err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(pod, latest) {
		t.Errorf("it is of %v, want %s", pod.OwnerReferences, latest.Name)
	}
}
