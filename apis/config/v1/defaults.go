// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Every default is made anew at each call. A pointer to a package variable would
// let one changed object change the defaults of all that come after it.

// SetDefaults_Level fills in what a level leaves open.
func SetDefaults_Level(in *Level) {
	if in.Strategy == "" {
		in.Strategy = StrategySpread
	}
	if in.Missing == "" {
		in.Missing = MissingInclude
	}
}

// SetDefaults_SpreadTreeArgs fills in which revisions count, and that nodes are proposed.
func SetDefaults_SpreadTreeArgs(in *SpreadTreeArgs) {
	if in.CountRevisions == "" {
		in.CountRevisions = CountNewest
	}
	if in.NodeHint == "" {
		in.NodeHint = NodeHintEnabled
	}
}

// SetDefaults_Batch fills in the times that are absent and keeps a written zero.
func SetDefaults_Batch(in *Batch) {
	if in.Window == nil {
		in.Window = &metav1.Duration{}
	}
	if in.MaxDelay == nil {
		in.MaxDelay = &metav1.Duration{Duration: time.Second}
	}
}
