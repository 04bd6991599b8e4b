// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The CRDs of the release are read as a client reads those of a cluster: integers among them, such as minimum: 1, are not fractions.
func TestDefinitionsAreReadAsThoseOfACluster(t *testing.T) {
	all, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 3 {
		t.Errorf("there are %d CRDs", len(all))
	}
	for _, definition := range all {
		text, err := definition.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		read, _, err := unstructured.UnstructuredJSONScheme.Decode(text, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(read.(*unstructured.Unstructured).Object, definition.Object) {
			t.Errorf("%s is another one when a client has read it", definition.GetName())
		}
	}
}
