// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// What is logged goes to the logger of the context that the cache was made with, as all that
// the scheduler logs.
func TestLogsGoToTheLoggerOfTheContext(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(4)))
	r := newRig(t, options())
	ctx := klog.NewContext(t.Context(), logger)
	var err error
	from := r.Sources
	from.Informers = informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	if r.Cache, err = New(ctx, options(), from); err != nil {
		t.Fatal(err)
	}
	r.observeAll()
	r.forgive("n3", noon.Add(time.Hour))
	r.reject("web", "n3", 1)
	for _, node := range []string{"n1", "n2"} {
		r.join(st.MakeNode().Name(node).Obj())
		r.reject("web", node, 1)
	}
	r.tick()
	got := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	for _, want := range []string{"A pod failed on its node", "Blaming no node: the error is the workload's own", "Nothing is forgiven"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q was not logged there:\n%s", want, got)
		}
	}
}
