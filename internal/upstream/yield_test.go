// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestYieldLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // nobody else runs unless we let them
	var ran atomic.Bool
	closed := errors.New("the queue is closed")
	next := yield(func(klog.Logger) (framework.QueuedEntityInfo, error) { return nil, closed })
	go func() { ran.Store(true) }()
	// One turn in 61 is the scheduler's own again, by Go's rules of fairness.
	for range 3 {
		if _, err := next(logr.Discard()); !errors.Is(err, closed) {
			t.Errorf("the queue's answer is lost: %v", err)
		}
	}
	if !ran.Load() {
		t.Error("pods are taken up while others wait to run")
	}
}
