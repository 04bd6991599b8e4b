// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package disconnect

import (
	"cmp"
	"time"

	"k8s.io/utils/ptr"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// rule is what a policy says of pods on nodes that do not answer.
type rule struct {
	replaceAfter, lostAfter time.Duration
	keep                    placementv1alpha1.Keep
}

// unknown reports whether nobody can tell what a policy says of its pods, because it cannot be read. The policy may be nil.
func unknown(p *clusterview.Policy) bool { return p != nil && p.Disconnect == nil && p.Err() != nil }

// ruleOf returns what a policy says, nil if it says nothing. The policy may be nil.
func ruleOf(p *clusterview.Policy) *rule {
	if p == nil || p.Disconnect == nil {
		return nil
	}
	// The API server fills in the defaults, unless it knew an older definition.
	d := p.Disconnect
	return &rule{
		replaceAfter: time.Duration(ptr.Deref(d.ReplaceAfterSeconds, 30)) * time.Second,
		lostAfter:    time.Duration(cmp.Or(d.LostAfterSeconds, 3600)) * time.Second,
		keep:         cmp.Or(d.Keep, placementv1alpha1.KeepBestPlaced),
	}
}
