// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newPlugin(t *testing.T) *constraints.Constraints {
	t.Helper()
	pl, _ := newCluster(t)
	return pl
}

// newCluster makes the plugin in a cluster that has the objects.
func newCluster(t *testing.T, objects ...runtime.Object) (*constraints.Constraints, *plugintest.Cluster) {
	t.Helper()
	c := plugintest.NewCluster(objects...)
	pl := plugintest.New[*constraints.Constraints](t, constraints.New, nil, c)
	c.Start(t)
	return pl, c
}

// asking is a pod with an annotation; "" is none.
func asking(annotation string) *st.PodWrapper {
	return plugintest.Asking(clusterview.ConstraintsAnnotation, annotation)
}

func TestNew(t *testing.T) {
	plugintest.WantNoArguments(t, "Constraints", newPlugin(t), constraints.New)
}

func TestSignPod(t *testing.T) {
	pl := newPlugin(t)
	sign := func(annotation string) any { return plugintest.Sign(t, pl, asking(annotation)) }
	plain, workers := sign(""), sign("node.role == worker")
	if plain == workers || workers == sign("node.role != worker") {
		t.Error("pods with other constraints are signed alike")
	}
	if workers != sign(" NODE.role==Worker") {
		t.Error("the same constraint in other words is signed otherwise")
	}
	plugintest.WantUnsigned(t, pl, asking("role == worker")) // it cannot be read
}

func TestFilter(t *testing.T) {
	node := st.MakeNode().Name("n1").UID("4711").Label("disk", "ssd").Label(corev1.LabelHostname, "h1").Label(corev1.LabelArchStable, "amd64").Obj()
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.2.3"}}
	for _, tc := range []struct {
		annotation string
		want       fwk.Code
	}{
		{"node.id == 4711", fwk.Success},
		{"node.hostname == H1", fwk.Success},
		{"node.name == n1", fwk.Success},
		{"node.role == worker", fwk.Success},
		{"node.role == manager", fwk.UnschedulableAndUnresolvable},
		{"node.ip == 10.1.0.0/16", fwk.Success},
		{"node.platform.arch == x86_64", fwk.Success},
		{"node.platform.os == linux", fwk.UnschedulableAndUnresolvable},
		{"node.labels.disk == ssd, engine.labels.gpu == a100", fwk.UnschedulableAndUnresolvable},
		{"", fwk.Skip},
	} {
		t.Run(tc.annotation, func(t *testing.T) {
			status := plugintest.Filter(t, newPlugin(t), asking(tc.annotation).Obj(), node)
			if status.Code() != tc.want || (tc.want == fwk.UnschedulableAndUnresolvable && status.Message() != constraints.ErrReasonConstraints) {
				t.Errorf("got %v, %q, want %v", status.Code(), status.Message(), tc.want)
			}
		})
	}
}

// The whole of what a user reads, and not only some of it.
func TestMalformed(t *testing.T) {
	const want = `annotation espalier.dev/constraints: constraint 2 "node.ip == 10.1.2": invalid address "10.1.2": ` +
		`use an address such as 10.1.2.3 or 2001:db8::2, or a range such as 10.1.0.0/16`
	plugintest.WantRefusal(t, plugintest.Filter(t, newPlugin(t), asking("node.role == worker, node.ip == 10.1.2").Obj(), nil), want)
	const empty = `annotation espalier.dev/constraints: no constraints in "": use KEY == VALUE or KEY != VALUE`
	plugintest.WantRefusal(t, plugintest.Filter(t, newPlugin(t), asking("").Annotation(clusterview.ConstraintsAnnotation, "").Obj(), nil), empty)
	plugintest.WantNoExtensions(t, newPlugin(t))
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t), asking("").Obj())
}

func TestHintAfterPodUpdate(t *testing.T) {
	empty := asking("").Annotation(clusterview.ConstraintsAnnotation, "")
	hints := plugintest.NewHints(t, newPlugin(t))
	hints.AfterPodUpdate("mended", asking("role == worker"), asking("node.role == worker"), fwk.Queue)
	hints.AfterPodUpdate("loosened", asking("node.role == worker, node.id == x"), asking("node.role == worker"), fwk.Queue)
	hints.AfterPodUpdate("taken away", asking("role == worker"), asking(""), fwk.Queue)
	hints.AfterPodUpdate("empty and taken away", empty, asking(""), fwk.Queue)
	hints.AfterPodUpdate("changed, still bad", asking("role == worker"), asking("rule == worker"), fwk.QueueSkip)
	hints.AfterPodUpdate("something else changed", asking("node.id == x"), asking("node.id == x").Label("a", "b").Annotation("c", "d"), fwk.QueueSkip)
}

func TestHintAfterNodeChange(t *testing.T) {
	bare, ssd := st.MakeNode().Name("n").Obj(), st.MakeNode().Name("n").Label("disk", "ssd").Obj()
	more := st.MakeNode().Name("n").Label("disk", "ssd").Label("x", "y").Obj()
	at := func(address string) *corev1.Node {
		n := bare.DeepCopy()
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		return n
	}
	hints := plugintest.NewHints(t, newPlugin(t))
	hints.AfterNodeChange("a node comes on which they hold", asking("node.labels.disk == ssd"), fwk.Add, nil, ssd, fwk.Queue)
	hints.AfterNodeChange("a node comes on which they do not", asking("node.labels.disk == ssd"), fwk.Add, nil, bare, fwk.QueueSkip)
	hints.AfterNodeChange("a label comes", asking("node.labels.disk == ssd"), fwk.UpdateNodeLabel, bare, ssd, fwk.Queue)
	hints.AfterNodeChange("a label goes", asking("node.labels.disk != ssd"), fwk.UpdateNodeLabel, ssd, bare, fwk.Queue)
	hints.AfterNodeChange("a label goes that was wanted", asking("node.labels.disk == ssd"), fwk.UpdateNodeLabel, ssd, bare, fwk.QueueSkip)
	hints.AfterNodeChange("another label comes", asking("node.labels.disk == ssd"), fwk.UpdateNodeLabel, ssd, more, fwk.QueueSkip)
	hints.AfterNodeChange("one of two labels comes", asking("node.labels.disk == ssd, node.labels.x == y"), fwk.UpdateNodeLabel, bare, ssd, fwk.QueueSkip)
	hints.AfterNodeChange("a taint goes", asking("node.labels.disk == ssd"), fwk.UpdateNodeTaint, ssd, ssd, fwk.QueueSkip)
	hints.AfterNodeChange("an address comes", asking("node.ip == 10.0.0.1"), fwk.UpdateNodeCondition, bare, at("10.0.0.1"), fwk.Queue)
	hints.AfterNodeChange("an address has come before", asking("node.ip == 10.0.0.1"), fwk.UpdateNodeTaint, at("10.0.0.1"), at("10.0.0.1"), fwk.Queue)
	hints.AfterNodeChange("another address comes", asking("node.ip == 10.0.0.1"), fwk.UpdateNodeCondition, bare, at("10.0.0.2"), fwk.QueueSkip)
	hints.AfterNodeChange("no node mends an annotation", asking("role == worker"), fwk.Add, nil, ssd, fwk.QueueSkip)
}

// An address that is attached to a node that runs leaves it ready, and the framework has no event. The pod that is woken must fit at once,
// although the scheduler's cache may not have seen the address.
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
