// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// Faults tells how a workload's revision has fared on the nodes, by the rule that
// the pod being scheduled is under. It is safe for concurrent use.
type Faults interface {
	// Rule is how records count.
	Rule() placement.Faults
	// Record is that of a node now.
	Record(of Identity, node string) placement.Record
	// Changed names the nodes whose records may have changed since a version, 0
	// for all; anew says that it can no longer tell, and every record must be asked
	// for again. The version returned is that of now.
	Changed(of Identity, since uint64) (nodes []string, anew bool, version uint64)
}

// faultsKey is where the Faults of the pod being scheduled are kept for the cycle.
const faultsKey fwk.StateKey = "Espalier/Faults"

type cycleFaults struct{ faults Faults }

// Clone shares the faults: they are not of the cycle.
func (c *cycleFaults) Clone() fwk.StateData { return c }

// WriteFaults leaves the faults that concern a pod for the other plugins of the cycle.
func WriteFaults(state fwk.CycleState, faults Faults) {
	state.Write(faultsKey, &cycleFaults{faults: faults})
}

// ReadFaults returns the faults left by WriteFaults, nil if there are none, as in a
// profile without the plugin that keeps them.
func ReadFaults(state fwk.CycleState) (Faults, error) {
	data, err := state.Read(faultsKey)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // Read has one error: nothing is under the key, and that is no fault.
	}
	c, ok := data.(*cycleFaults)
	if !ok {
		return nil, fmt.Errorf("reading %q: it holds a %T", faultsKey, data)
	}
	return c.faults, nil
}
