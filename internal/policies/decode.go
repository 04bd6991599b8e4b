// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// stored is a policy as the informer keeps it: read, without its status, which the controller writes for each pod.
type stored struct {
	metav1.ObjectMeta // for its key
	policy            *clusterview.Policy
}

// store reads an object of the API server. Each is decoded by itself: an informer that decodes a list as a whole has none
// of its policies if one is malformed, as another version of the kind may have left it, and pods of all
// namespaces would wait.
func store(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil // it has been stored before
	}
	return &stored{metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}, clusterview.DecodePolicy(object)}, nil
}
