// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// recording is a manager of a cluster that knows no kinds. It notes what is added.
type recording struct {
	ctrl.Manager
	added []manager.Runnable
}

func (r *recording) Add(is manager.Runnable) error {
	r.added = append(r.added, is)
	return nil
}

func (*recording) GetRESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

func (*recording) GetClient() client.Client { return nil }

func (*recording) GetEventRecorder(string) recorder.EventRecorder { return nil }

// No node is cordoned for its end where no Moves can be made: nobody would empty it.
func TestNoNodeEndsWithoutMoves(t *testing.T) {
	o := &options{lifetimes: lifetimes{pool: "pool=blue"}}
	m := &recording{}
	if !o.moves() {
		t.Fatal("ends ask for no Moves")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := o.addLifetimes(m); err != nil {
		t.Fatal(err)
	}
	if err := o.addMoves(ctx, m); err != nil || len(m.added) > 0 {
		t.Errorf("there are %d controllers, error %v", len(m.added), err)
	}
	if err := o.addStagger(m); err != nil || len(m.added) != 1 {
		t.Errorf("with Moves there are %d, error %v, want one", len(m.added), err)
	}
}

// Allocations keep pods off nodes where the scheduler orders pods by them. The controller knows that by --allocations.
func TestRenewalsGoByAllocations(t *testing.T) {
	for _, tenants := range []bool{false, true} {
		o := &options{schedulers: []string{"espalier-scheduler"}, tenants: tenants}
		o.drain.AtOnce, o.lifetimes.renew = 5, true
		if err := o.readLifetimes(); err != nil {
			t.Fatal(err)
		}
		if got := o.lifetimes.renewals.Allocations; got != tenants {
			t.Errorf("with --allocations=%t renewals go by them: %t", tenants, got)
		}
	}
}
