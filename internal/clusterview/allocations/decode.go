// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// amountText is how an amount is written, as the CRDs have it. Kubernetes takes exponents of any size, and computes with all digits: with
// those of 1e2000000000 for hours.
var amountText = regexp.MustCompile(`^[+-]?([0-9]{1,32}([.][0-9]{0,32})?|[.][0-9]{1,32})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`)

// CheckAmounts says which of the amounts of a field cannot be read, nil if all can. They are as the API server gives them, by the name of
// their resource, and must not be decoded before.
func CheckAmounts(field any) error {
	amounts, _ := field.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if text, ok := amounts[name].(string); ok && !amountText.MatchString(text) {
			return fmt.Errorf("%q of %s is no amount: write one such as 4, 500m, 8Gi or 1e6", syntax.Cut(text), syntax.Cut(name))
		}
	}
	return nil
}

// decode decodes an object by itself: of a list that is decoded as a whole nothing is left if one of it cannot be. Its status is not
// decoded. What cannot be decoded of its spec is left out, field by field, and the error names the first.
func decode[T any](object *unstructured.Unstructured) (*T, error) {
	in, err := decodeSpec[T](object, object.Object["spec"])
	if err == nil {
		return in, nil
	}
	fields, _ := object.Object["spec"].(map[string]any)
	rest, named := make(map[string]any), false
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		_, cannot := decodeSpec[T](object, map[string]any{name: fields[name]})
		switch {
		case cannot == nil:
			rest[name] = fields[name]
		case !named:
			err, named = fmt.Errorf("spec.%s: %w", name, cannot), true
		}
	}
	in, _ = decodeSpec[T](object, rest)
	return in, err
}

// decodeSpec decodes an object with another spec. It is empty if it cannot be decoded.
func decodeSpec[T any](object *unstructured.Unstructured, spec any) (*T, error) {
	if fields, ok := spec.(map[string]any); ok {
		if err := CheckAmounts(fields["reserved"]); err != nil {
			return new(T), err
		}
	}
	in := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": object.Object["metadata"], "spec": spec}, in); err != nil {
		return new(T), fmt.Errorf("it cannot be decoded: %s: it was written for another version of its kind; apply the CRD of this release, and the object anew", syntax.Cut(err.Error()))
	}
	return in, nil
}
