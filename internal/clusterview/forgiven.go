// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// maxAhead is how far ahead of ours the clock may be by which a node was mended.
const maxAhead = time.Minute

// Forgiven returns up to when the failures on a node are forgiven: somebody says in
// an annotation that he has mended it. The time is zero if nobody does. What cannot
// be read forgives nothing, nor does a time in the future, which would forgive whatever
// comes: only one by a clock that is a little fast is taken for now.
func Forgiven(node *corev1.Node, now time.Time) (time.Time, error) {
	text, ok := node.Annotations[FailuresForgivenAnnotation]
	if !ok {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s: %.100q is no time; write it as 2026-01-31T12:00:00Z", FailuresForgivenAnnotation, text)
	}
	if at.After(now.Add(maxAhead)) {
		return time.Time{}, fmt.Errorf("annotation %s: %.100q is in the future; write when the node was fixed, %s at the latest",
			FailuresForgivenAnnotation, text, now.UTC().Format(time.RFC3339))
	}
	if at.After(now) {
		return now, nil
	}
	return at, nil
}
