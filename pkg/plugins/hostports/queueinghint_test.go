// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func TestHintAfterPodDelete(t *testing.T) {
	gone := func(obj any) plugintest.Change {
		return plugintest.Change{Event: framework.EventAssignedPodDelete, Before: obj}
	}
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
				if got, err := plugintest.Hint(t, newPlugin(t), pod, gone(obj)); err != nil || got != tc.want {
					t.Errorf("%s: got %v, %v, want %v", name, got, err, tc.want)
				}
			}
			// What the profile reserves is not given back by any pod.
			if got, err := plugintest.Hint(t, newPlugin(t, "90/tcp"), pod, gone(tc.deleted.Obj())); err != nil || got != fwk.QueueSkip {
				t.Errorf("of a pod that fits nowhere: got %v, %v", got, err)
			}
		})
	}
}

func TestHintAfterNodeChange(t *testing.T) {
	keeps := func(annotation string) *corev1.Node { return keeping("n", annotation).Obj() }
	for _, tc := range []struct {
		name          string
		before, after *corev1.Node // no before: it comes
		want          fwk.QueueingHint
	}{
		{"a node comes", nil, keeps(""), fwk.Queue},
		{"a node comes that reserves others", nil, keeps("22/tcp,80/udp"), fwk.Queue},
		{"a node comes that reserves one", nil, keeps("80/tcp"), fwk.QueueSkip},
		{"a node comes that cannot be read", nil, keeps("80"), fwk.QueueSkip},
		{"the port is given up", keeps("22/tcp,80/tcp"), keeps("22/tcp"), fwk.Queue},
		{"it is given up at some addresses", keeps("80/tcp"), keeps("127.0.0.1:80/tcp"), fwk.QueueSkip},
		{"one of two is given up", keeps("80/tcp,443/tcp"), keeps("443/tcp"), fwk.QueueSkip},
		{"the annotation is mended", keeps("22"), keeps("22/tcp"), fwk.Queue},
		{"it is mended, and reserves the port", keeps("80"), keeps("80/tcp"), fwk.QueueSkip},
		{"another port is given up", keeps("22/tcp"), keeps(""), fwk.QueueSkip},
		{"the port is reserved", keeps(""), keeps("80/tcp"), fwk.QueueSkip},
		{"something else changes", keeps("80/tcp"), keeps("80/tcp"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod, change := wanting(t, "80/tcp", "443/tcp").Obj(), plugintest.NodeChange(fwk.UpdateNodeAnnotation, tc.before, tc.after)
			plugintest.WantHint(t, newPlugin(t), pod, change, tc.want)
			if got, err := plugintest.Hint(t, newPlugin(t, "443/tcp"), pod, change); err != nil || got != fwk.QueueSkip {
				t.Errorf("of a pod that fits nowhere: got %v, %v", got, err)
			}
		})
	}
}
