// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
)

// A right that is missing is said once, however often it is missed, and again when it
// was there meanwhile.
func TestRegression_AMissingRightIsSaidOnce(t *testing.T) {
	r := newRig(t, options())
	missing := true
	r.client.PrependReactor("get", "configmaps", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return missing, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "espalier-failures", nil)
	})
	r.activate()
	const said = "Warning FailureRecordUnreadable of ConfigMap/espalier-failures: reading ConfigMap kube-system/espalier-failures"
	r.announced(said)
	for range 3 {
		if _, err := r.writeRecord(t.Context(), nil); err == nil {
			t.Error("it was written")
		}
	}
	r.announced()
	missing = false
	r.write()
	missing = true
	r.readRecord(t.Context())
	r.readRecord(t.Context())
	r.announced(said)
}

// Who stands by does not count again what the one who places pods counts.
func TestRegression_WhoStandsByHasNoGauges(t *testing.T) {
	o := options()
	r := newRig(t, o)
	gauge := func() float64 {
		t.Helper()
		n, err := testutil.GetGaugeMetricValue(faultyNodes.WithLabelValues(o.SchedulerName))
		r.must(err)
		return n
	}
	faultyNodes.WithLabelValues(o.SchedulerName).Set(42)
	r.see(r.ready(pod("a", "n2")))
	r.see(r.ready(pod("b", "n3")))
	r.reject("web", "n1", 5)
	r.pass(10 * time.Second)
	if n := gauge(); n != 42 {
		t.Errorf("it has %v", n)
	}
	r.activate()
	r.pass(time.Second)
	if n := gauge(); n != 1 {
		t.Errorf("it has %v, and places pods", n)
	}
}
