// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Answered is what the filters have said of a node so far: fits is only to be read
// where known is true.
type Answered func(node string) (fits, known bool)

// MayAsk returns the node about which a lazy decision has a reason to ask the filters
// next: the one that would be picked if all nodes not asked about did fit. To ask about
// any other node is work that cannot change the decision. It is "" where all are refused.
func MayAsk(levels []level.Level, rule placement.Faults, nodes []placement.Node, request placement.Usage, answered Answered) string {
	name, _ := Pick(levels, rule, nodes, request, func(name string) bool {
		fits, known := answered(name)
		return fits || !known
	})
	return name
}
