// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// A pod is bound once, however often it is heard of, and one that is recreated is another pod.
func TestBindings(t *testing.T) {
	waiting := onNode("waiting", "web", "", "1")
	waiting.UID = "1"
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
	for _, uid := range []types.UID{"2", "2", "3"} {
		pod := onNode("web", "web", "a", "1")
		pod.UID = uid
		b.saw(pod)
	}
	if pods, bound := b.Bound(); pods != 3 || bound != 2 {
		t.Errorf("%d pods, %d of them bound, want 3 and 2", pods, bound)
	}
	if gap := b.LongestGap(since); gap > b.Last().Sub(since) || gap <= 0 {
		t.Errorf("without a binding for %s, want at most the %s until the last", gap, b.Last().Sub(since))
	}
	if gap := b.LongestGap(b.Last()); gap != 0 {
		t.Errorf("without a binding for %s after the last", gap)
	}
}

func TestAnnouncedTwice(t *testing.T) {
	said := func(name, uid, reason string, times int32) *eventsv1.Event {
		e := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Reason: reason,
			Regarding: corev1.ObjectReference{Name: "pod-" + uid, UID: types.UID(uid)},
		}
		if times > 1 {
			e.Series = &eventsv1.EventSeries{Count: times}
		}
		return e
	}
	client := fake.NewClientset(
		said("once", "1", "Scheduled", 1), said("refused", "1", "FailedScheduling", 7),
		said("one", "2", "Scheduled", 1), said("another", "2", "Scheduled", 1),
		said("series", "3", "Scheduled", 2),
	)
	twice, err := AnnouncedTwice(t.Context(), client, "ns", 7, time.Second)
	if want := []string{"pod pod-2 (2) was announced as scheduled 2 times", "pod pod-3 (3) was announced as scheduled 2 times"}; err != nil || !slices.Equal(twice, want) {
		t.Errorf("%q, %v, want %q", twice, err, want)
	}
	// Of pods that nobody announces nobody knows.
	if _, err := AnnouncedTwice(t.Context(), client, "ns", 8, time.Millisecond); err == nil || !strings.Contains(err.Error(), "half of 8 pods in ns: 3 are announced") {
		t.Errorf("with three of eight announced: %v", err)
	}
}
