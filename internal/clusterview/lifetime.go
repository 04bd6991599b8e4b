// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/lifetime"
)

// EndOf is when a node ends, the zero time where nobody says so. The error quotes what cannot be read.
func EndOf(node *corev1.Node) (time.Time, error) {
	text, ok := node.Annotations[ValidUntilAnnotation]
	if !ok {
		return time.Time{}, nil
	}
	end, err := lifetime.ParseEnd(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s: %w", ValidUntilAnnotation, err)
	}
	return end, nil
}

// EndHour is the hour in which a node ends, by which nodes are compared, 0 for none. A node whose end cannot be read ends before all others:
// whoever wrote it wanted it to have one.
func EndHour(node *corev1.Node) int32 {
	end, err := EndOf(node)
	if err != nil {
		return lifetime.FirstHour
	}
	return lifetime.Hour(end)
}
