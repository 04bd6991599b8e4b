// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-scheduler/espalier/pkg/placement/lifetime"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// NodeClaimKind is what Karpenter has for each of its nodes.
var NodeClaimKind = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}

const (
	// terminationTimestamp is on a NodeClaim that is being deleted: when its node goes, whatever is on it.
	terminationTimestamp = "karpenter.sh/nodeclaim-termination-timestamp"
	// neverExpires is what a NodeClaim says that has no end.
	neverExpires = "Never"
)

// NodeOfClaim is the name of a NodeClaim's node, "" before there is one.
func NodeOfClaim(claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName")
	return name
}

// EndOfClaim is when Karpenter removes the node of a NodeClaim whatever is on it, the zero time for never: when it expires, which is a time
// after it was made, or by its termination timestamp if that is earlier. The error quotes what cannot be read.
func EndOfClaim(claim *unstructured.Unstructured) (time.Time, error) {
	end, err := expiry(claim)
	if err != nil {
		return time.Time{}, fmt.Errorf("NodeClaim %s: %w", claim.GetName(), err)
	}
	text, ok := claim.GetAnnotations()[terminationTimestamp]
	if !ok {
		return end, nil
	}
	terminated, err := lifetime.ParseEnd(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("NodeClaim %s: annotation %s: %w", claim.GetName(), terminationTimestamp, err)
	}
	if end.IsZero() || terminated.Before(end) {
		return terminated, nil
	}
	return end, nil
}

// expiry is when a NodeClaim expires, the zero time for never.
func expiry(claim *unstructured.Unstructured) (time.Time, error) {
	text, found, err := unstructured.NestedString(claim.Object, "spec", "expireAfter")
	if err != nil {
		return time.Time{}, err
	}
	if !found || text == neverExpires {
		return time.Time{}, nil
	}
	after, err := time.ParseDuration(text)
	if err != nil || after < 0 {
		return time.Time{}, fmt.Errorf("spec.expireAfter: %q is no duration: use one such as 720h, or Never", syntax.Cut(text))
	}
	return claim.GetCreationTimestamp().Add(after).UTC(), nil
}
