// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

var (
	podDeleted    = fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}
	nodeAdded     = fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}
	nodeAnnotated = fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeAnnotation}
)

// hint is what the plugin says of a pod it refused when an event comes.
func hint(t *testing.T, pl *HostPorts, event fwk.ClusterEvent, pod *corev1.Pod, before, after any) (fwk.QueueingHint, error) {
	t.Helper()
	events, err := pl.EventsToRegister(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logger, _ := ktesting.NewTestContext(t)
	for _, e := range events {
		if e.Event.Resource == event.Resource && e.Event.ActionType&event.ActionType != 0 {
			return e.QueueingHintFn(logger, pod, before, after)
		}
	}
	t.Fatalf("no hint is registered for %v", event)
	return fwk.QueueSkip, nil
}

func TestHintAfterPodDelete(t *testing.T) {
	on := func(ports ...string) *st.PodWrapper { return wanting(t, ports...).Name("gone").UID("gone").Node("n") }
	for _, tc := range []struct {
		name    string
		deleted *st.PodWrapper
		want    fwk.QueueingHint
	}{
		{"it held a port that is wanted", on("9/tcp", "80/tcp"), fwk.Queue},
		{"at an address", on("127.0.0.1:80/tcp"), fwk.Queue},
		{"it held others", on("80/udp", "81/tcp", "127.0.0.1:90/tcp"), fwk.QueueSkip},
		{"it held none", on(), fwk.QueueSkip},
		{"a node was kept free for it", wanting(t, "80/tcp").NominatedNodeName("n"), fwk.Queue},
		{"it had no node", wanting(t, "80/tcp"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := wanting(t, "80/tcp", "127.0.0.2:90/tcp").Obj()
			for name, obj := range map[string]any{
				"pod":  tc.deleted.Obj(),
				"tomb": cache.DeletedFinalStateUnknown{Key: "ns/gone", Obj: tc.deleted.Obj()},
			} {
				if got, err := hint(t, newPlugin(t), podDeleted, pod, obj, nil); err != nil || got != tc.want {
					t.Errorf("%s: got %v, %v, want %v", name, got, err, tc.want)
				}
			}
			// What the profile reserves is not given back by any pod.
			if got, err := hint(t, newPlugin(t, "90/tcp"), podDeleted, pod, tc.deleted.Obj(), nil); err != nil || got != fwk.QueueSkip {
				t.Errorf("of a pod that fits nowhere: got %v, %v", got, err)
			}
		})
	}
}

func TestHintAfterNodeChange(t *testing.T) {
	for _, tc := range []struct {
		name          string
		event         fwk.ClusterEvent
		before, after string // annotations
		want          fwk.QueueingHint
	}{
		{"a node comes", nodeAdded, "", "", fwk.Queue},
		{"a node comes that reserves others", nodeAdded, "", "22/tcp,80/udp", fwk.Queue},
		{"a node comes that reserves one", nodeAdded, "", "80/tcp", fwk.QueueSkip},
		{"a node comes that cannot be read", nodeAdded, "", "80", fwk.QueueSkip},
		{"the port is given up", nodeAnnotated, "22/tcp,80/tcp", "22/tcp", fwk.Queue},
		{"it is given up at some addresses", nodeAnnotated, "80/tcp", "127.0.0.1:80/tcp", fwk.QueueSkip},
		{"one of two is given up", nodeAnnotated, "80/tcp,443/tcp", "443/tcp", fwk.QueueSkip},
		{"the annotation is mended", nodeAnnotated, "22", "22/tcp", fwk.Queue},
		{"it is mended, and reserves the port", nodeAnnotated, "80", "80/tcp", fwk.QueueSkip},
		{"another port is given up", nodeAnnotated, "22/tcp", "", fwk.QueueSkip},
		{"the port is reserved", nodeAnnotated, "", "80/tcp", fwk.QueueSkip},
		{"something else changes", nodeAnnotated, "80/tcp", "80/tcp", fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var before any
			if tc.event == nodeAnnotated {
				before = keeping("n", tc.before).Obj()
			}
			pod, after := wanting(t, "80/tcp", "443/tcp").Obj(), keeping("n", tc.after).Obj()
			if got, err := hint(t, newPlugin(t), tc.event, pod, before, after); err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
			if got, err := hint(t, newPlugin(t, "443/tcp"), tc.event, pod, before, after); err != nil || got != fwk.QueueSkip {
				t.Errorf("of a pod that fits nowhere: got %v, %v", got, err)
			}
		})
	}
}
