// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"fmt"
	"testing"
	"time"
)

// What is trimmed changes nothing for the nodes that are left: an error on a node that has failed alone stays the node's.
func TestTrim(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	l := New(Options{Rule: Rule{Threshold: 2, Window: time.Hour}, OwnErrors: true})
	l.Advance(now)
	of := Revision{Workload: "w", Revision: "1"}
	for i := range 2 {
		l.Fail(of, "bad", Rule{}, Failure{Pod: fmt.Sprint("p", i), Kind: "exit 132", At: now.Add(time.Duration(i-5) * time.Second)})
	}
	node := func(i int) string { return fmt.Sprintf("n%02d", i) }
	for i := range 40 {
		uid := fmt.Sprint("q", i)
		l.Place(of, node(i), uid)
		if i%2 == 0 {
			l.Succeed(of, node(i), uid, now.Add(time.Duration(i-50)*time.Second))
		}
		if i != 1 {
			l.Gone(of, node(i), uid)
		}
	}
	before := l.Record(of, "bad")
	if len(l.Marks()) != 1 || l.Entries() != 41 {
		t.Fatalf("%d nodes are marked, of %d something is known", len(l.Marks()), l.Entries())
	}
	_, _, version := l.Changed(of, 0)
	l.Trim(of)
	// The one that failed, the one with a pod, and the two that succeeded last.
	if n := l.Entries(); n != 4 {
		t.Errorf("of %d nodes something is known, want 4", n)
	}
	if after := l.Record(of, "bad"); after != before || len(l.Marks()) != 1 {
		t.Errorf("the record was %+v and is %+v, %d nodes are marked", before, after, len(l.Marks()))
	}
	if got := l.Record(of, node(1)); got.Unproven != 1 {
		t.Errorf("a pod that is there is forgotten: %+v", got)
	}
	if _, anew, _ := l.Changed(of, version); !anew {
		t.Error("nobody is told to read the records again")
	}
	for _, i := range []int{36, 38} {
		if c, _ := l.Capture(of); len(c.sound) != 2 || c.sound[0].Node != node(i) && c.sound[1].Node != node(i) {
			t.Errorf("of what succeeded %v is left", c.sound)
		}
	}
	version++
	if _, _, again := l.Changed(of, 0); again < version {
		t.Errorf("the version is %d, and was %d", again, version-1)
	}
	l.Trim(of)
	l.Trim(Revision{})
}
