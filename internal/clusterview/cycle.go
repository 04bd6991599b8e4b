// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"
)

// levelsKey is where the levels of the pod being scheduled are kept for the cycle.
const levelsKey fwk.StateKey = "Espalier/Levels"

type cycleLevels struct{ levels Levels }

// Clone shares the levels, which nobody modifies.
func (c *cycleLevels) Clone() fwk.StateData { return c }

// WriteLevels leaves a pod's levels for the other plugins of the cycle.
func WriteLevels(state fwk.CycleState, levels Levels) {
	state.Write(levelsKey, &cycleLevels{levels: levels})
}

// ReadLevels returns the levels left by WriteLevels. found is false if there are
// none, as in a profile without the plugin that resolves them.
func ReadLevels(state fwk.CycleState) (levels Levels, found bool, err error) {
	data, err := state.Read(levelsKey)
	if err != nil {
		return Levels{}, false, nil //nolint:nilerr // Read has one error: there is nothing under the key.
	}
	c, ok := data.(*cycleLevels)
	if !ok {
		return Levels{}, false, fmt.Errorf("reading %q: it holds a %T", levelsKey, data)
	}
	return c.levels, true, nil
}
