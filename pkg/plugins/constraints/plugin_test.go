// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"
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
	p := st.MakePod().Namespace("ns").Name("p").UID("p")
	if annotation != "" {
		p.Annotation(clusterview.ConstraintsAnnotation, annotation)
	}
	return p
}

func TestNew(t *testing.T) {
	plugintest.WantNoArguments(t, "Constraints", newPlugin(t), constraints.New)
}

func TestSignPod(t *testing.T) {
	sign := func(annotation string) any {
		t.Helper()
		fragments, status := newPlugin(t).SignPod(context.Background(), asking(annotation).Obj())
		if !status.IsSuccess() || len(fragments) != 1 {
			t.Fatalf("%q is signed %v, %v", annotation, fragments, status)
		}
		return fragments[0]
	}
	plain, workers := sign(""), sign("node.role == worker")
	if plain == workers || workers == sign("node.role != worker") {
		t.Error("pods with other constraints are signed alike")
	}
	if workers != sign(" NODE.role==Worker") {
		t.Error("the same constraint in other words is signed otherwise")
	}
	if fragments, status := newPlugin(t).SignPod(t.Context(), asking("role == worker").Obj()); status.Code() != fwk.Unschedulable || fragments != nil {
		t.Errorf("a pod that cannot be read is signed %v, %v", fragments, status)
	}
}
