// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
)

func newPlugin(t *testing.T) *constraints.Constraints {
	t.Helper()
	pl, err := constraints.New(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pl.(*constraints.Constraints)
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
	if name := newPlugin(t).Name(); name != "Constraints" {
		t.Errorf("its name is %q", name)
	}
	_, err := constraints.New(t.Context(), &runtime.Unknown{}, nil)
	const want = "args of plugin Constraints: it takes none, got *runtime.Unknown: remove its pluginConfig"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
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
	if !strings.HasPrefix(constraints.ErrReasonConstraints, "node(s) ") {
		t.Errorf("the reason %q does not read after a number of nodes", constraints.ErrReasonConstraints)
	}
}
