// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=placement.espalier.dev

// Package v1alpha1 is the API group placement.espalier.dev: objects by which
// people say how pods are placed without touching the pods' own manifests.
//
// A client links this package and apimachinery, no scheduler.
// manifests/crds is generated from its markers.
package v1alpha1
