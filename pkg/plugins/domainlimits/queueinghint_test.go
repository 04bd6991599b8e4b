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
	hints := plugintest.NewHints(t, newRig(t.Context(), t).pl)
	hints.AfterPodUpdate("limits mended", pod("rack=two"), pod("rack=2"), fwk.Queue)
	hints.AfterPodUpdate("limits taken away", pod("rack=1"), pod(""), fwk.Queue)
	hints.AfterPodUpdate("limits changed", pod("rack=1"), pod("rack=2"), fwk.Queue)
	hints.AfterPodUpdate("limits changed, still bad", pod("rack=two"), pod("rack=three"), fwk.QueueSkip)
	hints.AfterPodUpdate("given another workload", pod("rack=1"), pod("rack=1").Label(clusterview.WorkloadLabel, "db"), fwk.Queue)
	hints.AfterPodUpdate("given another workload, limits bad", pod("rack"), pod("rack").Label(clusterview.WorkloadLabel, "db"), fwk.QueueSkip)
	hints.AfterPodUpdate("relabelled, so that another policy may govern it", pod(""), pod("").Label("app", "other"), fwk.Queue)
	hints.AfterPodUpdate("something else changed", pod("rack=1"), pod("rack=1").Annotation("other", "x").Toleration("t"), fwk.QueueSkip)
	hints.AfterPodUpdate("nothing changed", pod("rack=1"), pod("rack=1"), fwk.QueueSkip)
	hints.AfterPodUpdate("empty limits taken away", pod("").Annotation(clusterview.DomainLimitsAnnotation, ""), pod(""), fwk.Queue)
}

func TestHintAfterNodeChange(t *testing.T) {
	hints := plugintest.NewHints(t, newRig(t.Context(), t).pl)
	hints.AfterNodeChange("a node comes", web("p", "2", "node.name=1"), fwk.UpdateNodeLabel, nil, node("n").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node of some rack comes", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, nil, node("n rack=a").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node of no rack comes", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, nil, node("n zone=a").Obj(), fwk.QueueSkip)
	hints.AfterNodeChange("a node with one of two properties comes", web("p", "2", "rack=1,zone=1"), fwk.UpdateNodeLabel, nil, node("n rack=a").Obj(), fwk.QueueSkip)
	hints.AfterNodeChange("a node is given a rack", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n").Obj(), node("n rack=a").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node moves to another rack", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), node("n rack=b").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node leaves its rack", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), node("n").Obj(), fwk.Queue)
	hints.AfterNodeChange("a node is relabelled otherwise", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), node("n rack=a zone=b").Obj(), fwk.QueueSkip)
	hints.AfterNodeChange("a node is relabelled, of which only the name matters", web("p", "2", "node.name=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), node("n rack=b").Obj(), fwk.QueueSkip)
	hints.AfterNodeChange("a node of a rack goes", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), nil, fwk.Queue)
	hints.AfterNodeChange("a node of no rack goes", web("p", "2", "rack=1"), fwk.UpdateNodeLabel, node("n").Obj(), nil, fwk.QueueSkip)
	hints.AfterNodeChange("a node goes, and its domain with it", web("p", "2", "node.name=1"), fwk.UpdateNodeLabel, node("n rack=a").Obj(), nil, fwk.QueueSkip)
	hints.AfterNodeChange("no node mends limits", web("p", "2", "rack=two"), fwk.UpdateNodeLabel, nil, node("n rack=a").Obj(), fwk.QueueSkip)
}
