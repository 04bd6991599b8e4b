// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record is what a scheduler leaves to the next one: what cannot be seen in the API,
// because the pods and Events that told it are gone by then.
//
//   - record.go: what a record has
//   - encode.go: its text, and what is left out where it is too long
//   - claims.go: who has room where there is too little, here and in what is known
//   - configmap.go: where it is kept
package record

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

const (
	// version is that of the record's form.
	version = 1
	// MaxSuspects bounds the suspects in a record. More than these would not be tainted.
	MaxSuspects = 1000
)

// Record is what is known of all revisions.
type Record struct {
	Version int `json:"version"`
	// Suspects are the nodes against which there is enough to taint them, by name.
	Suspects  []string   `json:"suspects,omitempty"`
	Revisions []Revision `json:"revisions"`
}

// New returns a record without revisions, in the form that is written now.
func New() *Record { return &Record{Version: version} }

// Revision is a revision in the record.
type Revision struct {
	failure.RevisionHistory
	// Family is clusterview.Family of its pods.
	Family string `json:"family"`
	// Regarding is the object that Events about it are for.
	Regarding corev1.ObjectReference `json:"regarding"`
	// Marked are the nodes of which an Event has said that they are faulty for it.
	Marked []string `json:"marked,omitempty"`
	// Own are the kinds of failures that are the workload's own, and Threshold is its
	// rule's: by these its text is made shorter.
	Own       []string `json:"-"`
	Threshold int      `json:"-"`
}
