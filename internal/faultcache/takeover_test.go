// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// written is the record as the API server has it.
func (r *rig) written() string {
	r.Helper()
	cm, err := r.client.CoreV1().ConfigMaps("kube-system").Get(context.Background(), "espalier-failures", metav1.GetOptions{})
	r.must(err)
	return cm.Data[record.Key]
}

// newStandby is a scheduler that has written of a node that it is faulty, and one that stands by and has read the record before.
func newStandby(t *testing.T) (leader, standby *rig) {
	t.Helper()
	leader = newRig(t, options())
	leader.activate()
	standby = leader.renew(options())
	standby.readRecord(t.Context())
	leader.reject("web", "n1", 5)
	leader.pass(3 * time.Second)
	leader.write()
	return leader, standby
}

// Who stood by does not replace a record that he could not read when he took over: he
// has read an older one.
func TestRegression_TakeoverWithoutARecord(t *testing.T) {
	r, by := newStandby(t)
	broken := true
	r.client.PrependReactor("get", "configmaps", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return broken, nil, errors.New("timeout")
	})
	by.activate()
	by.reject("other", "n7", 1)
	if _, err := by.writeRecord(t.Context(), nil); !errors.Is(err, errUnread) {
		t.Errorf("it writes: %v", err)
	}
	broken = false
	by.write()
	for _, workload := range []string{"web", "other"} {
		if text := by.written(); !strings.Contains(text, "StatefulSet.apps/"+workload) {
			t.Errorf("%s is not in the record: %s", workload, text)
		}
	}
	by.record("n1", placement.Record{Failures: 5, Unforgiven: 5})
}

// The record is read though something else cannot be.
func TestRegression_TakeoverWithoutEvents(t *testing.T) {
	_, by := newStandby(t)
	by.Activate(t.Context()) // it is not ready
	by.record("n1", placement.Record{Failures: 5, Unforgiven: 5})
}

// A scheduler that does not know its nodes yet makes nothing of the record, and leaves
// it alone.
func TestTakeoverBeforeTheBeginning(t *testing.T) {
	r := newRig(t, options())
	r.activate()
	r.reject("web", "n1", 5)
	r.write()
	early := r.renew(options())
	early.begun = false
	early.part("n1")
	early.Activate(t.Context())
	if _, err := early.writeRecord(t.Context(), nil); !errors.Is(err, errUnread) {
		t.Errorf("it writes: %v", err)
	}
	early.again("n1").CreationTimestamp = metav1.Time{}
	early.observeAll()
	early.write()
	early.record("n1", placement.Record{Failures: 5, Unforgiven: 5})
}
