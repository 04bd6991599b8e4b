// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a library says is followed by what to do about it, in one line.
func TestLine(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for want, err := range map[string]error{
		"--snapshot":                           fmt.Errorf("listing pods: %w", apierrors.NewForbidden(pods, "", errors.New("no"))),
		"log in again":                         apierrors.NewUnauthorized("no"),
		"--kubeconfig and --context choose it": fmt.Errorf("asking:\n%w", &net.OpError{Op: "dial", Err: errors.New("connection refused")}),
		"get-contexts":                         errors.New(`context "x" does not exist`),
	} {
		if got := line(err); !strings.Contains(got, want) || strings.Contains(got, "\n") || !strings.HasPrefix(got, strings.Fields(err.Error())[0]) {
			t.Errorf("of %q it is said %q", err, got)
		}
	}
	if got := line(errors.New("two\n\tlines")); got != "two lines" {
		t.Errorf("two lines become %q", got)
	}
}
