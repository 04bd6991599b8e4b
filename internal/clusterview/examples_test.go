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

// TestDocumentedAnnotations reads the annotations that docs/limits-and-filters.md gives as examples, in lines of manifests.
func TestDocumentedAnnotations(t *testing.T) {
	page, err := os.ReadFile("../../docs/limits-and-filters.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{clusterview.ConstraintsAnnotation, clusterview.PlatformsAnnotation} {
		found := regexp.MustCompile(`(?m)^ +`+regexp.QuoteMeta(key)+`: (.+)$`).FindAllSubmatch(page, -1)
		if len(found) == 0 {
			t.Errorf("docs/limits-and-filters.md gives no example of %s", key)
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
