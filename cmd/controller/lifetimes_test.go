// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

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
