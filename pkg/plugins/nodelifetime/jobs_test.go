// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	"k8s.io/client-go/tools/cache"
)

// However many Jobs were asked for that never come, a late one is waited for, and what is remembered stays bounded.
func TestALateJobAfterVeryManyThatNeverCome(t *testing.T) {
	j := &jobs{lister: batchlisters.NewJobLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})), awaited: sets.New[cache.ObjectName]()}
	for i := range 2*maxAwaited + 1 {
		if _, err := j.get("ns", fmt.Sprint("gone-", i)); !apierrors.IsNotFound(err) {
			t.Fatalf("the error is %v", err)
		}
		if n := len(j.awaited); n > maxAwaited {
			t.Fatalf("%d Jobs are waited for", n)
		}
	}
	if _, err := j.get("ns", "late"); !apierrors.IsNotFound(err) {
		t.Fatalf("the error is %v", err)
	}
	late := cache.NewObjectName("ns", "late")
	if !j.came(late) || j.came(late) {
		t.Error("it is not waited for, or twice")
	}
}
