// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func TestHintAfterPodUpdate(t *testing.T) {
	empty := asking("").Annotation(clusterview.ConstraintsAnnotation, "")
	for _, tc := range []struct {
		name          string
		before, after *st.PodWrapper
		want          fwk.QueueingHint
	}{
		{"mended", asking("role == worker"), asking("node.role == worker"), fwk.Queue},
		{"loosened", asking("node.role == worker, node.id == x"), asking("node.role == worker"), fwk.Queue},
		{"taken away", asking("role == worker"), asking(""), fwk.Queue},
		{"empty and taken away", empty, asking(""), fwk.Queue},
		{"changed, still bad", asking("role == worker"), asking("rule == worker"), fwk.QueueSkip},
		{"something else changed", asking("node.id == x"), asking("node.id == x").Label("a", "b").Annotation("c", "d"), fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plugintest.WantHint(t, newPlugin(t), tc.before.Obj(), plugintest.PodUpdate(tc.before.Obj(), tc.after.Obj()), tc.want)
		})
	}
}

func TestHintAfterNodeChange(t *testing.T) {
	bare, ssd := st.MakeNode().Name("n").Obj(), st.MakeNode().Name("n").Label("disk", "ssd").Obj()
	more := st.MakeNode().Name("n").Label("disk", "ssd").Label("x", "y").Obj()
	at := func(address string) *corev1.Node {
		n := bare.DeepCopy()
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		return n
	}
	for _, tc := range []struct {
		name          string
		annotation    string
		action        fwk.ActionType
		before, after *corev1.Node
		want          fwk.QueueingHint
	}{
		{"a node comes on which they hold", "node.labels.disk == ssd", fwk.Add, nil, ssd, fwk.Queue},
		{"a node comes on which they do not", "node.labels.disk == ssd", fwk.Add, nil, bare, fwk.QueueSkip},
		{"a label comes", "node.labels.disk == ssd", fwk.UpdateNodeLabel, bare, ssd, fwk.Queue},
		{"a label goes", "node.labels.disk != ssd", fwk.UpdateNodeLabel, ssd, bare, fwk.Queue},
		{"a label goes that was wanted", "node.labels.disk == ssd", fwk.UpdateNodeLabel, ssd, bare, fwk.QueueSkip},
		{"another label comes", "node.labels.disk == ssd", fwk.UpdateNodeLabel, ssd, more, fwk.QueueSkip},
		{"one of two labels comes", "node.labels.disk == ssd, node.labels.x == y", fwk.UpdateNodeLabel, bare, ssd, fwk.QueueSkip},
		{"a taint goes", "node.labels.disk == ssd", fwk.UpdateNodeTaint, ssd, ssd, fwk.QueueSkip},
		{"an address comes", "node.ip == 10.0.0.1", fwk.UpdateNodeCondition, bare, at("10.0.0.1"), fwk.Queue},
		{"an address has come before", "node.ip == 10.0.0.1", fwk.UpdateNodeTaint, at("10.0.0.1"), at("10.0.0.1"), fwk.Queue},
		{"another address comes", "node.ip == 10.0.0.1", fwk.UpdateNodeCondition, bare, at("10.0.0.2"), fwk.QueueSkip},
		{"no node mends an annotation", "role == worker", fwk.Add, nil, ssd, fwk.QueueSkip},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plugintest.WantHint(t, newPlugin(t), asking(tc.annotation).Obj(), plugintest.NodeChange(tc.action, tc.before, tc.after), tc.want)
		})
	}
}

// An address that is attached to a node that runs leaves it ready, and the framework
// has no event. The pod that is woken must fit at once, although the scheduler's
// cache may not have seen the address.
func TestRegression_NewAddressOfAReadyNodeWakesNobody(t *testing.T) {
	waits := asking("node.ip == 10.0.0.1").Name("waits").UID("waits").Obj()
	before := st.MakeNode().Name("n").Obj()
	after := before.DeepCopy()
	after.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	pl, c := newCluster(t, before, waits,
		asking("node.ip == 10.0.0.2").Name("elsewhere").UID("elsewhere").Obj(),
		asking("node.ip == 10.0.0.1").Name("placed").UID("placed").Node("n").Obj(),
		asking("node.id == n").Name("other").UID("other").Obj(),
		asking("role == worker").Name("malformed").UID("malformed").Obj())
	c.WantWoken(t, pl, waits, before, after)
}
