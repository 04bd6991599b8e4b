// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preferences

import "github.com/espalier-scheduler/espalier/internal/policies"

// Under makes the plugin know these policies.
func (pl *Preferences) Under(p *policies.Policies) { pl.policies = p }
