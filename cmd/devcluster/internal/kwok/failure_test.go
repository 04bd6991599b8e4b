// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podoutcome"
)

func TestEachKindLooksAsAKubeletReportsIt(t *testing.T) {
	type look struct {
		phase               corev1.PodPhase
		reason              string // of the pod
		waiting, terminated string // of its containers
		last                string
		seen                string // by those who look for failures
	}
	for name, want := range map[string]look{
		"rejected":  {phase: corev1.PodFailed, reason: "UnexpectedAdmissionError", seen: "UnexpectedAdmissionError"},
		"error":     {phase: corev1.PodFailed, terminated: "Error", seen: "Error(1)"},
		"crashloop": {phase: corev1.PodRunning, waiting: "CrashLoopBackOff", last: "Error", seen: "Error(1)"},
		"oom":       {phase: corev1.PodRunning, waiting: "CrashLoopBackOff", last: "OOMKilled", seen: "OOMKilled"},
		"image":     {phase: corev1.PodPending, waiting: "ImagePullBackOff", seen: podoutcome.KindImagePull},
		"create":    {phase: corev1.PodPending, waiting: "CreateContainerError", seen: "CreateContainerError"},
		"mount":     {phase: corev1.PodPending, waiting: "ContainerCreating", seen: "FailedMount"},
		"sandbox":   {phase: corev1.PodPending, waiting: "ContainerCreating", seen: "FailedCreatePodSandBox"},
	} {
		kind, err := FailureKindNamed(name)
		must(t, err)
		pod, stages := aPod(), kind.onNode("node-001", nil, false)
		pod.Status = render[corev1.PodStatus](t, stages[len(stages)-1].Status, pod)
		status := pod.Status
		found := podoutcome.Failures(pod)
		if e := stages[0].Event; e != nil && len(found) == 0 {
			if f, ok := podoutcome.EventFailure(aboutPod(pod, e)); ok {
				found = append(found, f)
			}
		}
		got := look{phase: status.Phase, reason: status.Reason}
		for _, f := range found {
			if f.At.IsZero() {
				t.Errorf("%s: %+v has no time", name, f)
			}
			got.seen += f.Kind
		}
		for _, container := range status.ContainerStatuses {
			if container.Ready {
				t.Errorf("%s: container %s is ready", name, container.Name)
			}
			if container.State.Waiting != nil {
				got.waiting = container.State.Waiting.Reason
			}
			if container.State.Terminated != nil {
				got.terminated = container.State.Terminated.Reason
			}
			if container.LastTerminationState.Terminated != nil {
				got.last = container.LastTerminationState.Terminated.Reason
			}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if len(FailureKinds()) != 8 {
		t.Errorf("%d kinds, the table above has 8", len(FailureKinds()))
	}
}

// aboutPod is the event of a stage, as kwok writes it.
func aboutPod(pod *corev1.Pod, e *Event) *corev1.Event {
	return &corev1.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:           e.Type, Reason: e.Reason, Message: e.Message, Source: corev1.EventSource{Component: "kubelet"},
		FirstTimestamp: metav1.Now(),
	}
}

func TestReasonsAreChosen(t *testing.T) {
	for name, reason := range map[string]string{"rejected": "OutOfexample.com/gpu", "create": "RunContainerError", "sandbox": "NetworkNotReady"} {
		kind, err := FailureKindNamed(name)
		must(t, err)
		if kind, err = kind.Because(reason); err != nil {
			t.Fatal(err)
		}
		stage := kind.onNode("node-001", nil, false)[0]
		status := render[corev1.PodStatus](t, stage.Status, aPod())
		shown := status.Reason == reason || stage.Event != nil && stage.Event.Reason == reason
		if len(status.ContainerStatuses) > 0 {
			shown = shown || status.ContainerStatuses[0].State.Waiting.Reason == reason
		}
		if !shown {
			t.Errorf("%s: %+v with event %+v does not show %s", name, status, stage.Event, reason)
		}
		if _, err := kind.Because("a: b"); err == nil || !strings.Contains(err.Error(), `"a: b"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	loop, err := FailureKindNamed("crashloop")
	must(t, err)
	if _, err := loop.Because("Error"); err == nil || !strings.Contains(err.Error(), "leave it out") {
		t.Errorf("a reason of a crash loop: %v", err)
	}
}

func TestUnknownKindListsTheKnown(t *testing.T) {
	_, err := FailureKindNamed("bogus")
	if err == nil || !strings.Contains(err.Error(), `"bogus"`) || !strings.Contains(err.Error(), "crashloop") {
		t.Errorf("error %v", err)
	}
}

func TestFailureWinsOverHealthOnItsNodeOnly(t *testing.T) {
	for _, healthy := range append(Nodes(), Pods()...) {
		if healthy.Weight != 0 {
			t.Errorf("healthy stage %q has weight %d: it could win over a failure", healthy.Name, healthy.Weight)
		}
	}
	labels := map[string]string{"app": "web"}
	for _, kind := range FailureKinds() {
		for _, stage := range kind.onNode("node-007", labels, false) {
			if stage.Weight < 1 || stage.Kind != "Pod" || stage.Labels["app"] != "web" {
				t.Errorf("%s: %+v", kind.Name, stage)
			}
			if !slices.ContainsFunc(stage.Match, func(m Match) bool {
				return m.JQ == ".spec.nodeName" && m.Operator == "In" && slices.Equal(m.Values, []string{"node-007"})
			}) {
				t.Errorf("%s: stage %q is not tied to the node: %+v", kind.Name, stage.Name, stage.Match)
			}
			if !slices.ContainsFunc(stage.Match, func(m Match) bool { return m.JQ == notDeleted.JQ && m.Operator == "DoesNotExist" }) {
				t.Errorf("%s: stage %q would keep a deleted pod", kind.Name, stage.Name)
			}
		}
		for _, stage := range kind.onAnnotatedPods() {
			if stage.Annotations[FailAnnotation] != kind.Name {
				t.Errorf("%s: %+v", kind.Name, stage)
			}
		}
	}
}

func TestOnlyRunningPodsThatAreAskedForFail(t *testing.T) {
	kind, err := FailureKindNamed("error")
	must(t, err)
	phases := func(running bool) []string {
		for _, m := range kind.onNode("n", nil, running)[0].Match {
			if m.JQ == ".status.phase" {
				return m.Values
			}
		}
		return nil
	}
	if got := phases(false); !slices.Equal(got, []string{"Pending"}) {
		t.Errorf("phases %v", got)
	}
	if got := phases(true); !slices.Equal(got, []string{"Pending", "Running"}) {
		t.Errorf("with running: phases %v", got)
	}
}

// A pod that waits forever is looked at again at every change of it. If its status
// then came out different, kwok would write it, be told of the change, and never rest.
func TestWaitingFailuresComeToRest(t *testing.T) {
	for _, kind := range FailureKinds() {
		stage := kind.onNode("n", nil, false)[0]
		if kind.repeats || !strings.Contains(stage.Status, "phase: Pending") {
			continue
		}
		if strings.Contains(stage.Status, "Now") {
			t.Errorf("%s: the status depends on the time", kind.Name)
		}
	}
}

func TestRestartsAreCounted(t *testing.T) {
	kind, err := FailureKindNamed("crashloop")
	must(t, err)
	stages := kind.onNode("n", nil, false)
	if len(stages) != 2 || stages[1].DelayMillis == 0 {
		t.Fatalf("stages %+v", stages)
	}
	pod := aPod()
	for want := int32(1); want < 4; want++ {
		pod.Status = render[corev1.PodStatus](t, stages[1].Status, pod)
		if got := pod.Status.ContainerStatuses[0].RestartCount; got != want {
			t.Errorf("%d restarts, want %d", got, want)
		}
	}
}
