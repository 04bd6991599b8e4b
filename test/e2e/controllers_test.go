// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// runFor are annotations that tell how long a Job's pod runs, to devcluster and to KWOK's own
// general stages, which have it run no longer than their jitter.
func runFor(how string) map[string]string {
	return map[string]string{
		"devcluster.espalier.dev/run-for": how, "pod-complete.stage.kwok.x-k8s.io/delay": how, "pod-complete.stage.kwok.x-k8s.io/jitter-delay": how,
	}
}

func TestJob(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(3, 20, zone("zone-a"))
	s.nodes(2, 20, zone("zone-b"))
	s.nodes(1, 20, zone("zone-c"))
	template := s.template("app", "spread="+zoneLabel)
	// Pods that end while others are still to come do not count any more, and then nobody could
	// say what is even: until they are told to, none of them ends.
	maps.Copy(template.Annotations, runFor("24h"))
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := s.client.BatchV1().Jobs(s.ns).Create(s.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Completions: ptr.To[int32](13), Parallelism: ptr.To[int32](13), Template: template},
	}, metav1.CreateOptions{})
	s.must(err, "creating Job")
	o := s.settled("app", 13)
	s.counts(o, 0, 5, 4, 4)
	s.even(o)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": runFor("1s")}})
	s.must(err, "writing down that pods are to end")
	for _, p := range o.Pods {
		_, err := s.client.CoreV1().Pods(s.ns).Patch(s.ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		s.must(err, "telling pod "+p.Name+" to end")
	}
	s.until("the Job to complete", func() error {
		job, err := s.client.BatchV1().Jobs(s.ns).Get(s.ctx, "job", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if job.Status.Succeeded != 13 || job.Status.Failed != 0 {
			return fmt.Errorf("%d of 13 pods succeeded, %d failed", job.Status.Succeeded, job.Status.Failed)
		}
		return nil
	})
}

// A StatefulSet starts one pod after the other; the tree must remember between them.
func TestStatefulSet(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(3, 20, zone("zone-a"))
	s.nodes(2, 20, zone("zone-b"))
	s.nodes(1, 20, zone("zone-c"))
	_, err := s.client.AppsV1().StatefulSets(s.ns).Create(s.ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](5), Selector: selects("db"), ServiceName: "db", Template: s.template("db", "spread="+zoneLabel)},
	}, metav1.CreateOptions{})
	s.must(err, "creating StatefulSet")
	o := s.settled("db", 5)
	s.counts(o, 0, 2, 2, 1)
	s.even(o)
}

// Pods without a controller are one workload if a label says so, and one each if
// none does: then nothing is to be even between them but their nodes.
func TestBarePodsUnderOneLabel(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(4, 20, zone("zone-a"))
	s.nodes(1, 20, zone("zone-b"))
	s.nodes(1, 20, zone("zone-c"))
	template := s.template("app", "spread="+zoneLabel)
	template.Labels[workloadLabel] = "runners"
	for i := range 9 {
		s.pod(fmt.Sprintf("runner-%d", i), template)
	}
	o := s.settled("app", 9)
	s.counts(o, 0, 3, 3, 3)
	s.even(o)
}
