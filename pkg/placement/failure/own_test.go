// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// A program that ends with another number each time once blamed every node: no number
// shows on more than half of them.
func TestRegression_AnotherExitCodeEachTime(t *testing.T) {
	o := options
	o.Class = class
	s := tell(t, o)
	for n := range 4 {
		for i := range 6 {
			s.fail(web1, fmt.Sprintf("n%d", n+1), fmt.Sprintf("Error(%d)", 10*n+i), 1)
		}
	}
	if marks := s.Marks(); len(marks) > 0 {
		t.Errorf("marks are %v", marks)
	}
	if own, tried := s.Own(web1); len(own) != 24 || tried != 4 {
		t.Errorf("own are %v of %d nodes", own, tried)
	}
	// What is of another class is not excused.
	s.fail(web1, "n1", "Image", 5)
	marked(t, s.Ledger, "n1[{Image 5}]")
}

// A program that ends with 1 everywhere does not excuse a node on which it ends otherwise.
func TestAnotherExitCodeOnOneNode(t *testing.T) {
	o := options
	o.Class = class
	s := tell(t, o)
	for _, node := range []string{"n1", "n2", "n3"} {
		s.fail(web1, node, "Error(1)", 5)
	}
	s.fail(web1, "n3", "Error(132)", 5)
	marked(t, s.Ledger, "n3[{Error(132) 5}]")
	// Unless it does so on others, too, if only with other codes.
	s.fail(web1, "n2", "Error(133)", 1)
	marked(t, s.Ledger)
	s.Place(web1, "n4", "d")
	marked(t, s.Ledger, "n3[{Error(132) 5}]")
}

func marked(t *testing.T, l *failure.Ledger, want ...string) {
	t.Helper()
	var got []string
	for _, m := range l.Marks() {
		got = append(got, fmt.Sprint(m.Node, m.Kinds))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}
