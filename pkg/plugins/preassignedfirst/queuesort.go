// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preassignedfirst

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/queueorder"
)

// Less reports whether a is taken from the queue before b.
func (pl *PreassignedFirst) Less(a, b fwk.QueuedEntityInfo) bool {
	if p, q := a.GetPriority(), b.GetPriority(); p != q {
		return p > q
	}
	return queueorder.Since(a).Before(queueorder.Since(b))
}
