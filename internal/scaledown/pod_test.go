// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package scaledown

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/ordinal"
)

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		cost, number string // "" for none
		n            int32
		foreign      bool
	}{
		{"", "", 0, false},
		{"-3", "3", 3, false},
		{"-715", "1@70/100", 1, false},
		{"-4", "3", 0, true},
		{"-2147483648", "3", 0, true},
		{"100", "", 0, true},
		{"", "3", 0, true},
		{"-3", "three", 0, true},
		{"a cost", "", 0, true},
	} {
		p := st.MakePod().Name("p")
		for key, value := range map[string]string{corev1.PodDeletionCost: tc.cost, clusterview.DeletionOrdinalAnnotation: tc.number} {
			if value != "" {
				p.Annotation(key, value)
			}
		}
		if n, foreign := Read(p.Obj()); n != tc.n || foreign != tc.foreign {
			t.Errorf("cost %q and number %q: got %d, %t", tc.cost, tc.number, n, foreign)
		}
	}
}

// What a pod is bound with is read as ours.
func TestAnnotationsAreRead(t *testing.T) {
	for _, o := range []ordinal.Ordinal{{N: 1}, {N: 9, Share: ordinal.Share{Of: 3, Sum: 7}}, {N: 2, Share: ordinal.Share{Of: 0, Sum: 1}}} {
		p := st.MakePod().Name("p").Obj()
		p.Annotations = Annotations(o)
		if n, foreign := Read(p); n != o.N || foreign {
			t.Errorf("%v is read as %d, %t", p.Annotations, n, foreign)
		}
	}
}
