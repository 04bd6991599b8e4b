// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Forgiven returns up to when the failures on a node are forgiven: somebody says in
// an annotation that he has mended it. The time is zero if nobody does. What cannot
// be read forgives nothing.
func Forgiven(node *corev1.Node) (time.Time, error) {
	text, ok := node.Annotations[FailuresForgivenAnnotation]
	if !ok {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s: %.100q is no time; write it as 2026-01-31T12:00:00Z", FailuresForgivenAnnotation, text)
	}
	return at, nil
}
