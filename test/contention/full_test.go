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
	tally
	refused int
	took    time.Duration
}

// row notes what became of a story, for the page.
func (s *story) row(what string, with bool, o outcome) {
	if !with {
		o.answered, o.unanswered = 0, 0 // nobody was asked
	}
	world.table = append(world.table, fmt.Sprintf("| %s | %t | %d | %d | %d | %.1f s | %d | %d |", what, with, o.beyond, o.answered, o.bound, o.took.Seconds(), o.refused, o.unanswered))
	s.Logf("arbiter %t: %+v", with, o)
}

// check has the story fail for what the arbiter should have kept from happening. With -short it may be told on a
// machine without the time to answer, and what is bound without an answer the arbiter cannot help. Else of a hundred
// bindings one at most may lack it.
func (s *story) check(with bool, o outcome, pods int) {
	s.Helper()
	switch {
	case o.bound != pods:
		s.Errorf("%d pods are bound of %d", o.bound, pods)
	case with && o.answered > 0, with && !testing.Short() && (o.beyond > 0 || o.unanswered > pods/100):
		s.Errorf("with the arbiter: %+v", o)
	}
}

// fill has schedulers fill the story's nodes with pods that lie there when they begin, and returns what comes of it when so many run.
func (s *story) fill(with, rejecting bool, pods int, schedulers []*rig.Process, names ...string) outcome {
	s.Helper()
	var a *arbiter
	if with {
		s.webhook()
		a = s.arbiter("arbiter")
	}
	k := s.kubelets(rejecting)
	start := s.atOnce(schedulers, func() { s.pods(pods/len(names), names...) })
	var last time.Time
	s.until(fmt.Sprintf("%d pods to run", pods), schedulers[0], func() error {
		var running int
		if running, last = k.running(); running < pods {
			return fmt.Errorf("%d do", running)
		}
		return nil
	})
	o := outcome{tally: s.tally(k), took: last.Sub(start)}
	if a != nil {
		counts, err := a.bindings(s.ctx)
		s.must(err)
		o.refused = counts["refused"]
	}
	return o
}

// Two schedulers fill nodes until there is no room: the stock one and ours, half of the pods each.
func TestTwoSchedulersFull(t *testing.T) { twoSchedulers(t, "two-schedulers-full", 100) }

// Ten times as many nodes and pods. A pod of the stock scheduler that is refused waits for a second or two, which is half of the small story, and
// little of this one.
func TestTwoSchedulersFillTenTimesAsMuch(t *testing.T) {
	twoSchedulers(t, "two-schedulers-ten-times", 1000)
}

func twoSchedulers(t *testing.T, row string, nodes int) {
	t.Helper()
	tell := func(t *testing.T, with bool) outcome {
		t.Helper()
		s := begin(t)
		s.nodes(scaled(nodes), 10)
		pods := scaled(10 * nodes)
		o := s.fill(with, true, pods, []*rig.Process{s.stock("stock"), s.ours()}, corev1.DefaultSchedulerName, rig.SchedulerName)
		s.row(row, with, o)
		s.check(with, o, pods)
		return o
	}
	var without, with outcome
	t.Run("without", func(t *testing.T) { without = tell(t, false) }) // not with -short
	t.Run("with", func(t *testing.T) { with = tell(t, true) })
	if testing.Short() {
		return
	}
	if without.beyond == 0 {
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
		s.check(with, o, pods)
		return o
	}
	t.Run("without", func(t *testing.T) { tell(t, false) })
	t.Run("with", func(t *testing.T) { tell(t, true) })
}
