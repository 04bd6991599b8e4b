// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// outcome is what became of a story.
type outcome struct {
	beyond, bound, rejected, refused int
	// unasked is how many bindings were made without the arbiter's answer, because it did not come within a second.
	unasked int
	took    time.Duration
}

// row notes what became of a story, for the page.
func (s *story) row(what string, with bool, o outcome) {
	world.table = append(world.table, fmt.Sprintf("| %s | %t | %d | %d | %.1f s | %d | %d |", what, with, o.beyond+o.rejected, o.bound, o.took.Seconds(), o.refused, o.unasked))
	s.Logf("arbiter %t: %+v", with, o)
}

// fill has schedulers fill the story's nodes with pods that lie there when they begin, and returns what comes of it when so many run.
func (s *story) fill(with, rejecting bool, pods int, schedulers []*rig.Process, names ...string) outcome {
	s.Helper()
	var a *arbiter
	if with {
		s.webhook()
		a = s.arbiter("arbiter")
	}
	k, before := s.kubelets(rejecting), s.unasked()
	start := s.atOnce(schedulers, func() { s.pods(pods/len(names), names...) })
	var last time.Time
	s.until(fmt.Sprintf("%d pods to run", pods), schedulers[0], func() error {
		var running int
		if running, _, last = k.count(); running < pods {
			return fmt.Errorf("%d do", running)
		}
		return nil
	})
	o := outcome{took: last.Sub(start)}
	o.beyond, o.bound = s.beyond()
	_, o.rejected, _ = k.count()
	if a != nil {
		counts, err := a.bindings(s.ctx)
		s.must(err)
		o.refused, o.unasked = counts["refused"], s.unasked()-before
	}
	return o
}

// Two schedulers fill nodes until there is no room: the stock one and ours, half of the pods each.
func TestTwoSchedulersFull(t *testing.T) {
	tell := func(t *testing.T, with, rejecting bool) outcome {
		s := begin(t)
		s.nodes(scaled(100), 10)
		pods := scaled(1000)
		o := s.fill(with, rejecting, pods, []*rig.Process{s.stock("stock"), s.ours()}, corev1.DefaultSchedulerName, rig.SchedulerName)
		s.row("two-schedulers-full", with, o)
		if with && (o.beyond+o.rejected > o.unasked || o.bound != pods) {
			s.Errorf("with the arbiter: %+v", o)
		}
		return o
	}
	var without, with outcome
	t.Run("without", func(t *testing.T) { without = tell(t, false, true) })
	t.Run("with", func(t *testing.T) { with = tell(t, true, true) })
	if without.rejected == 0 {
		t.Log("without the arbiter nothing was promised twice this time")
	}
	t.Logf("until all pods run it took %s without and %s with the arbiter: %.2f", without.took, with.took, with.took.Seconds()/without.took.Seconds())
}

// Three stock schedulers without an election each try every pod.
func TestThreeActives(t *testing.T) {
	tell := func(t *testing.T, with bool) outcome {
		s := begin(t)
		pods := scaled(5000)
		s.nodes(pods*20/19/15, 15)
		o := s.fill(with, false, pods, []*rig.Process{s.stock("one"), s.stock("two"), s.stock("three")}, corev1.DefaultSchedulerName)
		s.row("three-actives", with, o)
		if o.bound != pods || with && o.beyond > o.unasked {
			s.Errorf("arbiter %t: %+v", with, o)
		}
		return o
	}
	t.Run("without", func(t *testing.T) { tell(t, false) })
	t.Run("with", func(t *testing.T) { tell(t, true) })
}
