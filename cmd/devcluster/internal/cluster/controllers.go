// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/espalier-scheduler/espalier/cmd/devcluster/internal/controllers"
)

// runControllers runs the controllers until ctx ends. grace is how long a node that
// has fallen silent still counts as Ready.
func (c *cluster) runControllers(ctx context.Context, kubeconfig string, grace time.Duration) error {
	config, err := controllers.Configuration(kubeconfig, c.keys, grace)
	if err != nil {
		return err
	}
	if c.Kubernetes != "" {
		is, err := c.binaryVersion(ctx, managerPart)
		if err != nil {
			return err
		}
		return c.runBinary(ctx, managerPart, append(controllers.Args(config, is), "--feature-gates="+c.FeatureGates))
	}
	if err := controllers.Run(ctx, config); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}
