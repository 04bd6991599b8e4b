// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-scheduler/espalier/internal/controllers/tenants"
)

// addTenants adds the controller of Partitions and Allocations, which waits until the kinds are installed.
func (o *options) addTenants(m manager.Manager) error {
	c := &tenants.Controller{
		Client: m.GetClient(), Events: m.GetEventRecorder("espalier-controller"), Clock: clock.RealClock{}, Schedulers: o.schedulers,
	}
	return m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if there, err := installed(ctx, m.GetRESTMapper(), tenants.Kinds, o.informers); !there {
			return err
		}
		return c.Start(ctx)
	}))
}
