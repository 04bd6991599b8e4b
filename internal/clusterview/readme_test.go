// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"os"
	"regexp"
	"testing"

	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// TestREADMEsAnnotations reads the annotations that the README gives as examples, each
// in a span of code of its own.
func TestREADMEsAnnotations(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{clusterview.ConstraintsAnnotation, clusterview.PlatformsAnnotation} {
		found := regexp.MustCompile("`"+regexp.QuoteMeta(key)+": ([^`]+)`").FindAllSubmatch(readme, -1)
		if len(found) == 0 {
			t.Errorf("the README gives no example of %s", key)
		}
		for _, example := range found {
			pod := st.MakePod().Annotation(key, string(example[1])).Obj()
			if _, err := clusterview.Constraints(pod); err != nil {
				t.Error(err)
			}
			if _, err := clusterview.PlatformWish(pod); err != nil {
				t.Error(err)
			}
		}
	}
}
