// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podoutcome_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/kubelet/events"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
)

// warning is a kubelet's, of a pod.
func warning(reason string, change ...func(*corev1.Event)) *corev1.Event {
	e := &corev1.Event{
		Type: corev1.EventTypeWarning, Reason: reason, Message: "said the kubelet", FirstTimestamp: at(2), LastTimestamp: at(50), Count: 9,
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "p", UID: "u"},
		Source:         corev1.EventSource{Component: "kubelet", Host: "n1"},
	}
	for _, c := range change {
		c(e)
	}
	return e
}

// The reasons are the kubelet's own constants: one that is renamed shows here.
func TestEventFailure(t *testing.T) {
	container := func(e *corev1.Event) { e.InvolvedObject.FieldPath = "spec.containers{app}" }
	for _, tc := range []struct {
		name  string
		event *corev1.Event
		want  string // kind, "" if it is no failure
	}{
		{"sandbox", warning(events.FailedCreatePodSandBox), "FailedCreatePodSandBox"},
		{"sandbox lost", warning(events.FailedStatusPodSandBox), "FailedPodSandBoxStatus"},
		{"mount", warning(events.FailedMountVolume), "FailedMount"},
		{"map", warning(events.FailedMapVolume), "FailedMapVolume"},
		{"file system", warning(events.FailedMountOnFilesystemMismatch), "FailedMountOnFilesystemMismatch"},
		{"devices", warning(events.FailedPrepareDynamicResources), "FailedPrepareDynamicResources"},
		{"cgroup", warning(events.FailedToCreatePodContainer), "FailedCreatePodContainer"},
		{"folders", warning(events.FailedToMakePodDataDirectories), "FailedMakePodDataDirectories"},
		{"network", warning(events.NetworkNotReady), "NetworkNotReady"},
		{"as newer recorders write it", warning(events.FailedCreatePodSandBox, func(e *corev1.Event) {
			e.Source, e.ReportingController, e.ReportingInstance = corev1.EventSource{}, "kubelet", "n1"
		}), "FailedCreatePodSandBox"},

		{"image, which the status shows", warning(events.FailedToPullImage, container), ""},
		{"container, which the status shows", warning(events.FailedToCreateContainer, container), ""},
		{"crash loop, which the status shows", warning(events.BackOffStartContainer, container), ""},
		{"probe", warning(events.ContainerUnhealthy, container), ""},
		{"end", warning(events.FailedToKillPod), ""},
		{"eviction, which the status shows", warning("Evicted"), ""},
		{"preemption", warning(events.PreemptContainer), ""},
		{"attachment", warning(events.FailedAttachVolume), ""},
		{"token, for which the API server has not heard of the pod's node", warning(events.FailedMountVolume, func(e *corev1.Event) {
			e.Message = `MountVolume.SetUp failed for volume "kube-api-access-n4m6d" : failed to fetch token: serviceaccounts "default" is forbidden: node requested token bound to a pod scheduled on a different node`
		}), ""},
		{"ConfigMap that the kubelet has not heard of", warning(events.FailedMountVolume, func(e *corev1.Event) {
			e.Message = `MountVolume.SetUp failed for volume "config" : failed to sync configmap cache: timed out waiting for the condition`
		}), ""},
		{"Secret that the kubelet has not heard of", warning(events.FailedMountVolume, func(e *corev1.Event) {
			e.Message = `MountVolume.SetUp failed for volume "key" : failed to sync secret cache: timed out waiting for the condition`
		}), ""},
		{"of another reporter", warning(events.FailedMountVolume, func(e *corev1.Event) { e.Source.Component = "somebody" }), ""},
		{"of a node", warning(events.FailedMountVolume, func(e *corev1.Event) { e.InvolvedObject.Kind = "Node" }), ""},
		{"of a Pod of another API", warning(events.FailedMountVolume, func(e *corev1.Event) { e.InvolvedObject.APIVersion = "x.io/v1" }), ""},
		{"of any pod of the name", warning(events.FailedMountVolume, func(e *corev1.Event) { e.InvolvedObject.UID = "" }), ""},
		{"no warning", warning(events.FailedMountVolume, func(e *corev1.Event) { e.Type = corev1.EventTypeNormal }), ""},
	} {
		got, ok := podoutcome.EventFailure(tc.event)
		want := podoutcome.Failure{Key: "event/" + tc.want, Kind: tc.want, At: at(2).Time, Message: "said the kubelet"}
		if tc.want == "" {
			want = podoutcome.Failure{}
		}
		if diff := gocmp.Diff(want, got); diff != "" || ok != (tc.want != "") {
			t.Errorf("%s: ok is %t\n%s", tc.name, ok, diff)
		}
	}
}

func TestSuccess(t *testing.T) {
	ready := func(seconds int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(seconds)}}
		}
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = new(at(3)) }
	// A pod may have succeeded and have no containers any more to say when.
	bare := with(corev1.PodSucceeded)
	bare.Status.Conditions = []corev1.PodCondition{
		conditionAt(corev1.PodScheduled, corev1.ConditionTrue, at(1).Time), conditionAt(corev1.PodReady, corev1.ConditionFalse, at(9).Time),
	}
	if since, ok := podoutcome.Success(with(corev1.PodSucceeded)); !ok || !since.IsZero() {
		t.Errorf("without conditions: %v, %v", since, ok)
	}
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want time.Time // zero if it is none
	}{
		{"has succeeded, and has no containers", bare, at(9).Time},
		{"runs", with(corev1.PodRunning, running("app", nil)), time.Time{}},
		{"is ready", also(with(corev1.PodRunning, running("app", nil)), ready(2)), at(2).Time},
		{"has crashed while it was ready", also(with(corev1.PodRunning, running("app", exit(1, 5))), ready(2)), at(5).Time},
		{"has crashed before", also(with(corev1.PodRunning, running("app", exit(1, 2))), ready(5)), at(5).Time},
		{"was ended well and is back", also(with(corev1.PodRunning, running("app", exit(0, 5))), ready(2)), at(2).Time},
		{"is ready and terminating", also(also(with(corev1.PodRunning, running("app", nil)), ready(2)), deleted), time.Time{}},
		{"has succeeded", with(corev1.PodSucceeded, dead("app", exit(0, 4)), dead("log", exit(0, 6))), at(6).Time},
		{"has succeeded once it was terminating", also(with(corev1.PodSucceeded, dead("app", exit(0, 4))), deleted), time.Time{}},
		{"has failed", also(with(corev1.PodFailed, dead("app", exit(1, 4))), ready(2)), time.Time{}},
		{"is not ready any more", with(corev1.PodRunning, waiting("app", "CrashLoopBackOff", exit(1, 4))), time.Time{}},
	} {
		since, ok := podoutcome.Success(tc.pod)
		if !since.Equal(tc.want) || ok == tc.want.IsZero() {
			t.Errorf("%s: got %v, %t, want %v", tc.name, since, ok, tc.want)
		}
	}
}

func conditionAt(t corev1.PodConditionType, status corev1.ConditionStatus, at time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: status, LastTransitionTime: metav1.Time{Time: at}}
}

func TestPlaced(t *testing.T) {
	created := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	bound := created.Add(time.Minute)
	for name, tc := range map[string]struct {
		conditions []corev1.PodCondition
		want       time.Time
	}{
		"bound":             {[]corev1.PodCondition{conditionAt(corev1.PodScheduled, corev1.ConditionTrue, bound)}, bound},
		"refused until now": {[]corev1.PodCondition{conditionAt(corev1.PodScheduled, corev1.ConditionFalse, bound)}, created},
		"without a time":    {[]corev1.PodCondition{conditionAt(corev1.PodScheduled, corev1.ConditionTrue, time.Time{})}, created},
		"nothing is said":   {nil, created},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: created}}, Status: corev1.PodStatus{Conditions: tc.conditions}}
		if got := podoutcome.Placed(pod); !got.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
