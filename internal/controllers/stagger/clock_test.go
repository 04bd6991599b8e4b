// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"maps"
	"strings"
	"testing"
	"time"
)

// Where the controller's clock jumps, no node is taken out of service, and no end changes: the nodes themselves say otherwise, or run since a
// time that is still to come.
func TestAClockThatJumps(t *testing.T) {
	p := newPool(t, blue("n1", "a"), blue("n2", "a"), blue("n3", "b"))
	p.lookAt(newYear)
	before := p.ends()
	for _, jump := range []time.Duration{365 * day, -365 * day, 22 * day, -22 * day} {
		p.nodesAt = newYear
		p.lookAt(newYear.Add(jump))
		p.lookAt(newYear.Add(jump + time.Minute))
		p.nodesAt = time.Time{}
		p.lookAt(newYear.Add(time.Minute))
		for _, n := range p.nodes() {
			if n.Spec.Unschedulable {
				t.Errorf("after a jump of %v node %s is out of service", jump, n.Name)
			}
		}
		if after := p.ends(); !maps.Equal(after, before) {
			t.Errorf("after a jump of %v the ends are %v, and were %v", jump, after, before)
		}
	}
	if said := <-p.events.Events; !strings.HasPrefix(said, "Warning NodeEndNotReported ") {
		t.Errorf("it is told %s", said)
	}
}

// What was said of a node is forgotten with it: nodes come and go for as long as a controller runs.
func TestNodesThatAreGoneAreForgotten(t *testing.T) {
	p := newPool(t, blue("n1", "a"), blue("n2", "a"))
	p.lookAt(newYear)
	p.nodesAt = newYear
	p.lookAt(newYear.Add(365 * day))
	if len(p.said) != 2 {
		t.Fatalf("it has said it of %v", p.said)
	}
	if err := p.api.Delete(t.Context(), p.node("n1")); err != nil {
		t.Fatal(err)
	}
	p.lookAt(newYear.Add(365 * day))
	if p.said["n1"] || !p.said["n2"] {
		t.Errorf("it remembers %v", p.said)
	}
}

// Where it jumps while pods are waited for, they still are, as long as the node is ready. Of one that is not, nothing else is to be heard.
func TestAClockThatJumpsInADrain(t *testing.T) {
	p := newPool(t, blue("n1", "a"), on("stuck", "n1"))
	p.lookAt(newYear)
	end := newYear.Add(21 * day)
	p.lookAt(end)
	p.nodesAt = end
	p.lookAt(end.Add(day))
	if due := rebootDue(p.node("n1")); due != "" {
		t.Errorf("after a jump it is left to be rebooted: %s", due)
	}
	p.unready = true
	p.lookAt(end.Add(day))
	if due := rebootDue(p.node("n1")); due != "True DrainTimeout" {
		t.Errorf("it does not answer, and its condition is %q", due)
	}
}
