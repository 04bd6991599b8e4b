// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/lifetime"
)

func annotated(annotations map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: annotations}}
}

func TestEndOf(t *testing.T) {
	end := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        time.Time
		hour        int32
		problem     string
	}{
		"none":      {nil, time.Time{}, 0, ""},
		"an end":    {map[string]string{ValidUntilAnnotation: "2026-01-31T12:00:00Z"}, end, int32(end.Unix() / 3600), ""},
		"elsewhere": {map[string]string{ValidUntilAnnotation: "2026-01-31T13:00:00+01:00"}, end, int32(end.Unix() / 3600), ""},
		"malformed": {map[string]string{ValidUntilAnnotation: "soon"}, time.Time{}, lifetime.FirstHour, `annotation espalier.dev/valid-until: no time "soon"`},
		"empty":     {map[string]string{ValidUntilAnnotation: ""}, time.Time{}, lifetime.FirstHour, "annotation espalier.dev/valid-until: "},
	} {
		t.Run(name, func(t *testing.T) {
			node := annotated(tc.annotations)
			is, err := EndOf(node)
			if !is.Equal(tc.want) || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("got %v and %v", is, err)
			}
			if hour := EndHour(node); hour != tc.hour {
				t.Errorf("the hour is %d, want %d", hour, tc.hour)
			}
		})
	}
}
