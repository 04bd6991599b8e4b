// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package placementtest

import "github.com/espalier-scheduler/espalier/pkg/placement"

// Usage is that of a node that has room for a thousand pods like Request, and has some:
// then its load says how many.
func Usage(pods int64) placement.Usage {
	return placement.Usage{CPU: placement.Amount{Requested: pods, Allocatable: 1000}}
}

// Request is what one such pod requests.
var Request = placement.Usage{CPU: placement.Amount{Requested: 1}}
