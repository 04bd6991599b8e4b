// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraints_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
)

func newPlugin(t *testing.T) *constraints.Constraints {
	t.Helper()
	pl, _, _ := newCluster(t)
	return pl
}

// handle is as much of the framework as the plugin asks for.
type handle struct {
	fwk.Handle
	factory informers.SharedInformerFactory
	woken   chan string // names of the pods given to Activate
}

func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h handle) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	for _, p := range pods {
		h.woken <- p.Name
	}
}

// newCluster makes the plugin in a cluster that has the objects, with a client to change
// it and the pods that are woken.
func newCluster(t *testing.T, objects ...runtime.Object) (*constraints.Constraints, *fake.Clientset, <-chan string) {
	t.Helper()
	client, woken := fake.NewClientset(objects...), make(chan string, 100)
	factory := informers.NewSharedInformerFactory(client, 0)
	pl, err := constraints.New(t.Context(), nil, handle{factory: factory, woken: woken})
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	return pl.(*constraints.Constraints), client, woken
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
