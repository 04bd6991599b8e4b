// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// A pod that changes its node is told of, and one that is recreated is another pod.
func TestBindings(t *testing.T) {
	waiting, moving := onNode("waiting", "web", "", "1"), onNode("moving", "web", "a", "1")
	waiting.UID, moving.UID = "1", "2"
	client := fake.NewClientset(waiting)
	b, stop, err := WatchBindings(t.Context(), client, "ns")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if pods, bound := b.Bound(); pods != 1 || bound != 0 || !b.Last().IsZero() {
		t.Errorf("%d pods, %d of them bound, the last at %s", pods, bound, b.Last())
	}
	since := time.Now()
	for _, pod := range []*corev1.Pod{moving, onNode("moving", "web", "b", "1")} {
		pod.UID = "2"
		b.saw(pod)
	}
	if pods, bound := b.Bound(); pods != 2 || bound != 1 {
		t.Errorf("%d pods, %d of them bound, want 2 and 1", pods, bound)
	}
	if moved := b.Moved(); len(moved) != 1 || !strings.Contains(moved[0], "pod 2 was on 2 nodes") {
		t.Errorf("moved are %v", moved)
	}
	if gap := b.LongestGap(since); gap != b.Last().Sub(since) || gap <= 0 {
		t.Errorf("without a binding for %s, want %s", gap, b.Last().Sub(since))
	}
	if gap := b.LongestGap(b.Last()); gap != 0 {
		t.Errorf("without a binding for %s after the last", gap)
	}
}

func TestAnnouncedTwice(t *testing.T) {
	said := func(name, uid, reason string) *eventsv1.Event {
		return &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Reason: reason,
			Regarding: corev1.ObjectReference{Name: "pod-" + uid, UID: types.UID(uid)},
		}
	}
	client := fake.NewClientset(said("a", "1", "Scheduled"), said("b", "1", "FailedScheduling"), said("c", "2", "Scheduled"), said("d", "2", "Scheduled"))
	twice, err := AnnouncedTwice(t.Context(), client, "ns")
	if err != nil || len(twice) != 1 || !strings.Contains(twice[0], "pod-2 (2)") {
		t.Errorf("%v, %v", twice, err)
	}
}
