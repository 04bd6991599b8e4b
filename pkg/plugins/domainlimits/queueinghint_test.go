// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func expectHint(t *testing.T, want fwk.QueueingHint, event fwk.ClusterEvent, pod *corev1.Pod, before, after any) {
	t.Helper()
	plugintest.WantHint(t, newRig(t.Context(), t).pl, pod, plugintest.Change{Event: event, Before: before, After: after}, want)
}

func TestHintAfterPodLeft(t *testing.T) {
	there := func() *st.PodWrapper { return web("x", "2", "").Node("n1") }
	db := func() *st.PodWrapper { return there().Label(clusterview.WorkloadLabel, "db") }
	for _, tc := range []struct {
		name          string
		before, after *st.PodWrapper // no after: it is deleted
		want          fwk.QueueingHint
	}{
		{"deleted", there(), nil, fwk.Queue},
		{"deleted, having been terminating", there().Terminating(), nil, fwk.Queue},
		{"terminating", there(), there().Terminating(), fwk.Queue},
		{"fails", there(), there().Phase(corev1.PodFailed), fwk.Queue},
		{"succeeds", there(), there().Phase(corev1.PodSucceeded), fwk.Queue},
		{"relabelled into another workload", there(), db(), fwk.Queue},
		{"relabelled into another revision", there(), there().Label("pod-template-hash", "3"), fwk.Queue},
		{"relabelled otherwise", there(), there().Label("x", "y"), fwk.QueueSkip},
		{"starts to run", there(), there().Phase(corev1.PodRunning), fwk.QueueSkip},
		{"changes while it goes", there().Terminating(), there().Terminating().Label("x", "y"), fwk.QueueSkip},
		{"joins the workload", db(), there(), fwk.QueueSkip},
		{"of another workload, deleted", db(), nil, fwk.QueueSkip},
		{"of another namespace, deleted", there().Namespace("other"), nil, fwk.QueueSkip},
		{"of another revision, deleted", there().Label("pod-template-hash", "1"), nil, fwk.QueueSkip},
		{"of another revision, terminating", there().Label("pod-template-hash", "1"), there().Label("pod-template-hash", "1").Terminating(), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := web("p", "2", "node.name=1").Obj()
			if tc.after == nil {
				expectHint(t, tc.want, framework.EventAssignedPodDelete, pod, tc.before.Obj(), nil)
				expectHint(t, tc.want, framework.EventAssignedPodDelete, pod, cache.DeletedFinalStateUnknown{Obj: tc.before.Obj()}, nil)
				return
			}
			for _, e := range framework.PodSchedulingPropertiesChange(tc.after.Obj(), tc.before.Obj(), false) {
				expectHint(t, tc.want, e, pod, tc.before.Obj(), tc.after.Obj())
			}
		})
	}
}

// The ReplicaSet of a pod may be unknown when one of its kind goes: whose it is cannot
// be told, and so it might be the one that is waited for.
func TestHintAfterPodOfAnUnknownOwnerLeft(t *testing.T) {
	owned := func(name, revision string) *st.PodWrapper {
		return st.MakePod().Namespace("ns").Name(name).UID(name).Label("pod-template-hash", revision).
			OwnerReference("web-"+revision, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	}
	waiting := web("p", "2", "node.name=1").Obj()
	expectHint(t, fwk.Queue, framework.EventAssignedPodDelete, waiting, owned("x", "2").Node("n1").Obj(), nil)
	expectHint(t, fwk.QueueSkip, framework.EventAssignedPodDelete, waiting, owned("x", "3").Node("n1").Obj(), nil)
	expectHint(t, fwk.QueueSkip, framework.EventAssignedPodDelete, waiting, owned("x", "2").Namespace("other").Node("n1").Obj(), nil)
}

func TestHintAfterPodUpdate(t *testing.T) {
	pod := func(limits string) *st.PodWrapper { return web("p", "2", limits) }
	for _, tc := range []struct {
		name          string
		before, after *st.PodWrapper
		want          fwk.QueueingHint
	}{
		{"limits mended", pod("rack=two"), pod("rack=2"), fwk.Queue},
		{"limits taken away", pod("rack=1"), pod(""), fwk.Queue},
		{"limits changed", pod("rack=1"), pod("rack=2"), fwk.Queue},
		{"limits changed, still bad", pod("rack=two"), pod("rack=three"), fwk.QueueSkip},
		{"given another workload", pod("rack=1"), pod("rack=1").Label(clusterview.WorkloadLabel, "db"), fwk.Queue},
		{"given another workload, limits bad", pod("rack"), pod("rack").Label(clusterview.WorkloadLabel, "db"), fwk.QueueSkip},
		{"relabelled, so that another policy may govern it", pod(""), pod("").Label("app", "other"), fwk.Queue},
		{"something else changed", pod("rack=1"), pod("rack=1").Annotation("other", "x").Toleration("t"), fwk.QueueSkip},
		{"nothing changed", pod("rack=1"), pod("rack=1"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			expectHint(t, tc.want, framework.EventTargetPodUpdate, tc.before.Obj(), tc.before.Obj(), tc.after.Obj())
		})
	}
	empty := pod("").Obj()
	empty.Annotations = map[string]string{clusterview.DomainLimitsAnnotation: ""}
	t.Run("empty limits taken away", func(t *testing.T) {
		expectHint(t, fwk.Queue, framework.EventTargetPodUpdate, empty, empty, pod("").Obj())
	})
}

func TestHintAfterNodeChange(t *testing.T) {
	for _, tc := range []struct {
		name, limits  string
		before, after string // "" for none
		want          fwk.QueueingHint
	}{
		{"a node comes", "node.name=1", "", "n", fwk.Queue},
		{"a node of some rack comes", "rack=1", "", "n rack=a", fwk.Queue},
		{"a node of no rack comes", "rack=1", "", "n zone=a", fwk.QueueSkip},
		{"a node with one of two properties comes", "rack=1,zone=1", "", "n rack=a", fwk.QueueSkip},
		{"a node is given a rack", "rack=1", "n", "n rack=a", fwk.Queue},
		{"a node moves to another rack", "rack=1", "n rack=a", "n rack=b", fwk.Queue},
		{"a node leaves its rack", "rack=1", "n rack=a", "n", fwk.Queue},
		{"a node is relabelled otherwise", "rack=1", "n rack=a", "n rack=a zone=b", fwk.QueueSkip},
		{"a node is relabelled, of which only the name matters", "node.name=1", "n rack=a", "n rack=b", fwk.QueueSkip},
		{"a node of a rack goes", "rack=1", "n rack=a", "", fwk.Queue},
		{"a node of no rack goes", "rack=1", "n", "", fwk.QueueSkip},
		{"a node goes, and its domain with it", "node.name=1", "n rack=a", "", fwk.QueueSkip},
		{"no node mends limits", "rack=two", "", "n rack=a", fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			event := fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeLabel}
			var before, after any
			if tc.before == "" {
				event.ActionType = fwk.Add
			} else {
				before = node(tc.before).Obj()
			}
			if tc.after == "" {
				event.ActionType = fwk.Delete
			} else {
				after = node(tc.after).Obj()
			}
			expectHint(t, tc.want, event, web("p", "2", tc.limits).Obj(), before, after)
		})
	}
}
