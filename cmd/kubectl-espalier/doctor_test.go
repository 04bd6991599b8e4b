// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The CRDs of the release are read as a client reads those of a cluster: integers among them, such as minimum: 1, are not fractions.
func TestDefinitionsAreReadAsThoseOfACluster(t *testing.T) {
	all, err := definitions()
	must(t, err)
	if len(all) < 3 {
		t.Errorf("there are %d CRDs", len(all))
	}
	for _, definition := range all {
		text, err := definition.MarshalJSON()
		must(t, err)
		read, _, err := unstructured.UnstructuredJSONScheme.Decode(text, nil, nil)
		must(t, err)
		if !equality.Semantic.DeepEqual(read.(*unstructured.Unstructured).Object, definition.Object) {
			t.Errorf("%s is another one when a client has read it", definition.GetName())
		}
	}
}

// The rights that are looked for are those of the manifests, of all roles for the whole cluster.
func TestRights(t *testing.T) {
	all, err := rights()
	must(t, err)
	has := func(group, resource, verb string) bool {
		return slices.ContainsFunc(all, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
		})
	}
	if !has("", "pods/binding", "create") || !has("node.k8s.io", "runtimeclasses", "list") || !has("", "events", "watch") || has("", "configmaps", "get") {
		t.Errorf("the rights are %v", all)
	}
}
