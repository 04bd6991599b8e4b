// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/testutil"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// The two schedulers race so often at least, and go on until there has been a collision:
// a race may have none, and then it has told nothing. Ten without one are no accident.
const rounds, roundsAtMost = 3, 10

// Two schedulers fill the same nodes to the last place at the same time and promise
// some places twice. The kubelet rejects what comes second, and every such pod is
// replaced until all have a place: a node that has rejected pods is not shunned so
// that the last place stays empty.
// No arbiter is asked about them.
func TestPodsRejectedWhileTheDefaultSchedulerFillsTheNodes(t *testing.T) {
	s := begin(t)
	s.unchecked()
	unit, total := s.room(places)
	rejected := 0
	for round := 1; round <= rounds || rejected == 0; round++ {
		if round > roundsAtMost {
			s.Fatalf("no pod was rejected in %d races: this told nothing", roundsAtMost)
		}
		ours, theirs := fmt.Sprintf("ours-%d", round), fmt.Sprintf("theirs-%d", round)
		s.deploy(ours, total/2, asks(rig.SchedulerName, unit))
		s.deploy(theirs, total-total/2, asks(corev1.DefaultSchedulerName, unit))
		s.settled(ours, total/2)
		s.settled(theirs, total-total/2)
		rejected += s.rejected(ours) + s.rejected(theirs)
		s.Logf("round %d: of ours %d were rejected, of the default scheduler's %d", round, s.rejected(ours), s.rejected(theirs))
		s.Scale(ours, 0)
		s.Scale(theirs, 0)
		s.settled(ours, 0)
		s.settled(theirs, 0)
	}
}

// With an arbiter no place is promised twice, so that no kubelet rejects a pod: a Job that may not try again does not fail.
func TestJobsThatMayNotTryAgainWhileTheDefaultSchedulerFillsTheNodes(t *testing.T) {
	s := begin(t)
	unit, total := s.room(places)
	before := s.unanswered()
	for round := 1; round <= rounds; round++ {
		ours, theirs := fmt.Sprintf("ours-%d", round), fmt.Sprintf("theirs-%d", round)
		s.job(ours, total/2, asks(rig.SchedulerName, unit))
		s.job(theirs, total-total/2, asks(corev1.DefaultSchedulerName, unit))
		s.runs(ours, total/2, before)
		s.runs(theirs, total-total/2, before)
		for _, name := range []string{ours, theirs} {
			s.Must(s.Client.BatchV1().Jobs(s.NS).Delete(s.Ctx, name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}), "deleting Job "+name)
			s.settled(name, 0)
		}
	}
	s.Logf("%d bindings were made without the arbiter's answer", s.unanswered()-before)
}

// places are what the node with the least room has, of the size of pods that room returns.
const places = 10

// asks has a pod be placed by a scheduler, and want so many thousandths of a CPU.
func asks(scheduler string, unit int64) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.SchedulerName = scheduler
		spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(unit, resource.DecimalSI)
	}
}

// unchecked has the arbiter not be asked about the story's pods, until the story ends.
func (s *story) unchecked() {
	s.Helper()
	change := func(selector string) {
		s.Helper()
		_, err := s.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(context.Background(), "espalier-arbiter", types.JSONPatchType,
			fmt.Appendf(nil, `[{"op":"replace","path":"/webhooks/0/namespaceSelector","value":%s}]`, selector), metav1.PatchOptions{})
		s.Must(err, "changing about whose pods the arbiter is asked")
	}
	s.broken(func() {
		change(fmt.Sprintf(`{"matchExpressions":[{"key":%q,"operator":"NotIn","values":[%q]}]}`, corev1.LabelMetadataName, s.NS))
	}, func() { change(`{}`) })
}

// job creates a Job of n pods at once that fails with the first of them.
func (s *story) job(name string, n int, change ...func(*corev1.PodSpec)) {
	s.Helper()
	template := s.template(name, change...)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := s.Client.BatchV1().Jobs(s.NS).Create(s.Ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{Completions: new(int32(n)), Parallelism: new(int32(n)), BackoffLimit: new(int32(0)), Template: template},
	}, metav1.CreateOptions{})
	s.Must(err, "creating Job "+name)
}

// unanswered is how many bindings the API server has made without the arbiter's answer since it started: it waits for a second and then goes on.
func (s *story) unanswered() (n int) {
	s.Helper()
	body, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(s.Ctx)
	s.Must(err, "reading the API server's metrics")
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(body))
	s.Must(err, "parsing the API server's metrics")
	for _, m := range families["apiserver_admission_webhook_fail_open_count"].GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetName() == "name" && label.GetValue() == "bindings.espalier.dev" {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

// runs waits until all n pods of a Job run, and fails the story when one of them has failed. It says how many bindings were made without an
// answer since there were so many before: of those the arbiter knows nothing.
func (s *story) runs(name string, n, before int) {
	s.Helper()
	failed := int32(0)
	s.Until(fmt.Sprintf("%d pods of Job %s", n, name), func() error {
		j, err := s.Client.BatchV1().Jobs(s.NS).Get(s.Ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		failed = j.Status.Failed
		if ready := *cmp.Or(j.Status.Ready, new(int32(0))); failed == 0 && int(ready) != n {
			return fmt.Errorf("%d of them run", ready)
		}
		return nil
	})
	if failed > 0 {
		s.Fatalf("Job %s has failed: %d of its pods were rejected, %d for want of CPU; %d bindings were made without the arbiter's answer", name, failed, s.rejected(name), s.unanswered()-before)
	}
}

// room is what a pod must ask for, in thousandths of a CPU, so that the fullest node
// has so many places, and how many places all nodes have then.
func (s *story) room(places int64) (unit int64, total int) {
	s.Helper()
	var free []int64
	for _, name := range append([]string{s.one}, s.many...) {
		node, err := s.Client.CoreV1().Nodes().Get(s.Ctx, name, metav1.GetOptions{})
		s.Must(err, "reading node "+name)
		pods, err := s.Client.CoreV1().Pods(corev1.NamespaceAll).List(s.Ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
		s.Must(err, "listing the pods of node "+name)
		left := node.Status.Allocatable.Cpu().MilliValue()
		for i := range pods.Items {
			for _, c := range pods.Items[i].Spec.Containers {
				left -= c.Resources.Requests.Cpu().MilliValue()
			}
		}
		free = append(free, left)
		if u := left / places; unit == 0 || u < unit {
			unit = u
		}
	}
	for _, left := range free {
		total += int(left / unit)
	}
	return unit, total
}

// rejected counts the app's pods that a kubelet has not admitted for want of CPU.
func (s *story) rejected(app string) (n int) {
	s.Helper()
	list, err := s.Client.CoreV1().Pods(s.NS).List(s.Ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	s.Must(err, "listing pods")
	for i := range list.Items {
		if p := &list.Items[i]; p.Status.Phase == corev1.PodFailed && p.Status.Reason == "OutOfcpu" {
			n++
		}
	}
	return n
}
