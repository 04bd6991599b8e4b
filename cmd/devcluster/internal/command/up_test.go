// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// Orders are passed on one after the other; what is none is quoted, and ends nothing.
func TestOrders(t *testing.T) {
	restart := make(chan string, 8)
	var complaints bytes.Buffer
	takeOrders(t.Context(), strings.NewReader("restart etcd\nreboot\n\nrestart kubelet\nrestart kube-apiserver\n"), &complaints, restart)
	close(restart)
	if got, want := slices.Collect(values(restart)), []string{"etcd", "kube-apiserver"}; !slices.Equal(got, want) {
		t.Errorf("to restart are %v, want %v", got, want)
	}
	for _, want := range []string{`"reboot" is no order`, `"" is no order`, `"kubelet" cannot be restarted: the parts that can are etcd and kube-apiserver`} {
		if !strings.Contains(complaints.String(), want) {
			t.Errorf("it does not say %s: %s", want, complaints.String())
		}
	}
}

func values(from <-chan string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for v := range from {
			if !yield(v) {
				return
			}
		}
	}
}
