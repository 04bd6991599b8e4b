// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"

	"k8s.io/client-go/informers"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Give has For return policies that never change to the plugins of a scheduler without an API server, until the context ends.
// Namespaces have the labels that the factory knows. It is for before there are plugins.
func Give(ctx context.Context, factory informers.SharedInformerFactory, policies ...*clusterview.Policy) error {
	p := Fixed(policies...)
	if err := p.watchNamespaces(factory.Core().V1().Namespaces()); err != nil {
		return err
	}
	shared.Lock()
	defer shared.Unlock()
	p.shareLocked(ctx, factory)
	return nil
}

// shareLocked has For return the policies for a factory, until the context ends. The caller holds the lock of shared.
func (p *Policies) shareLocked(ctx context.Context, factory informers.SharedInformerFactory) {
	shared.of[factory] = p
	context.AfterFunc(ctx, func() {
		shared.Lock()
		defer shared.Unlock()
		delete(shared.of, factory)
	})
}
