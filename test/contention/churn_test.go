// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// high has a pod take the place of others.
func (s *story) high() func(*corev1.Pod) {
	s.Helper()
	_, err := s.client.SchedulingV1().PriorityClasses().Create(s.ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Value: 1000}, metav1.CreateOptions{})
	s.must(err)
	s.Cleanup(func() {
		if err := s.client.SchedulingV1().PriorityClasses().Delete(context.Background(), s.name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = s.name }
}

// churn deletes a pod that runs and makes another, again and again until the context ends. Each tenth preempts others, if change says so.
func (s *story) churn(ctx context.Context, every time.Duration, scheduler string, change func(*corev1.Pod)) (made int) {
	s.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return made
		case <-tick.C:
		}
		made++
		p := s.pod(fmt.Sprintf("churn-%s-%05d", scheduler, made), scheduler)
		if made%10 == 0 && change != nil {
			change(p)
		}
		if err := s.create(ctx, p); err != nil && ctx.Err() == nil {
			s.Error(err)
		}
		if made%10 == 0 && change != nil {
			continue // it makes room for itself
		}
		list, err := s.client.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{LabelSelector: "app=" + scheduler, FieldSelector: "spec.nodeName!=", Limit: int64(1 + made%50)})
		if err != nil || len(list.Items) == 0 {
			continue
		}
		victim := list.Items[len(list.Items)-1].Name
		if err := s.client.CoreV1().Pods(s.name).Delete(ctx, victim, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			s.Error(err)
		}
	}
}

// admitted waits until an arbiter has admitted so many bindings, and returns all about which it was asked.
func (s *story) admitted(a *arbiter, want int) (counts map[string]int) {
	s.Helper()
	s.until(fmt.Sprintf("%d bindings to be admitted", want), a.Process, func() (err error) {
		if counts, err = a.bindings(s.ctx); err == nil && counts["admitted"] < want {
			err = fmt.Errorf("%d are", counts["admitted"])
		}
		return err
	})
	return counts
}

// One scheduler alone on nodes that are all but full, while pods go, come, and make way for others. It knows of everything that there is, so a binding
// that is refused is refused in vain: fewer than one in a thousand.
func TestFalseDenials(t *testing.T) {
	s := begin(t)
	s.nodes(20, 10)
	high := s.high()
	s.webhook()
	a := s.arbiter("arbiter")
	ours := s.ours()
	k := s.kubelets(true)
	s.pods(195, rig.SchedulerName)
	k.run(195, ours)
	const want, inVain = 5000, 1000
	ctx, cancel := context.WithCancel(s.ctx)
	var churning sync.WaitGroup
	begun := time.Now()
	churning.Go(func() { s.churn(ctx, 15*time.Millisecond, rig.SchedulerName, high) })
	counts := s.admitted(a, want)
	cancel()
	churning.Wait()
	o := outcome{tally: s.tally(k), refused: counts["refused"], took: time.Since(begun)}
	o.bound = counts["admitted"]
	s.Logf("of %d bindings %d were refused", counts["admitted"]+counts["refused"], counts["refused"])
	s.row("false-denials", true, o)
	if counts["refused"]*inVain > counts["admitted"] || o.answered > 0 {
		s.Errorf("of %d bindings %d were refused, and %d pods are beyond that the arbiter let pass", counts["admitted"]+counts["refused"], counts["refused"], o.answered)
	}
}

// The arbiter is killed again and again while two schedulers place pods on nodes that are all but full. No pod is lost; what is promised twice is
// promised while there is no arbiter.
func TestArbiterKilled(t *testing.T) {
	s := begin(t)
	s.nodes(20, 10)
	s.webhook()
	a := s.arbiter("first")
	schedulers := map[string]*rig.Process{corev1.DefaultSchedulerName: s.stock("stock"), rig.SchedulerName: s.ours()}
	k := s.kubelets(true)
	s.pods(95, corev1.DefaultSchedulerName, rig.SchedulerName)
	k.run(190, schedulers[rig.SchedulerName])
	const times = 6
	ctx, cancel := context.WithCancel(s.ctx)
	var churning sync.WaitGroup
	for scheduler := range schedulers {
		churning.Go(func() { s.churn(ctx, 30*time.Millisecond, scheduler, nil) })
	}
	begun := time.Now()
	for range times {
		s.admitted(a, 100)
		a.Kill()
		before, _, _ := k.seen()
		s.until("pods to be bound while there is no arbiter", schedulers[rig.SchedulerName], func() error {
			if now, _, _ := k.seen(); len(now) < len(before)+20 {
				return fmt.Errorf("%d were before, and %d are", len(before), len(now))
			}
			return nil
		})
		a = s.arbiter("next")
	}
	s.admitted(a, 100)
	cancel()
	churning.Wait()
	o := outcome{tally: s.tally(k), took: time.Since(begun)}
	s.row(fmt.Sprintf("arbiter-killed, %d times", times), true, o)
	if o.unanswered == 0 {
		s.Error("no binding was made while there was no arbiter: this told nothing")
	}
	if o.answered > 0 {
		s.Errorf("pods came to full nodes though the arbiter had been asked: %+v", o)
	}
	// Whatever was made is bound, or there is no room for it.
	s.until("all pods to have a node, or no node to have room", schedulers[rig.SchedulerName], func() error {
		list, err := s.client.CoreV1().Pods(s.name).List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		pending, bound := 0, 0
		for i := range list.Items {
			switch p := &list.Items[i]; {
			case p.Spec.NodeName == "":
				pending++
			case p.Status.Phase != corev1.PodFailed:
				bound++
			}
		}
		if pending > 0 && bound < 20*s.slots {
			return fmt.Errorf("%d have none, and %d are bound", pending, bound)
		}
		return nil
	})
}

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

// check has the story fail for what the arbiter should have kept from happening. With -short it may be told on a machine without the time
// to answer, and what is bound without an answer the arbiter cannot help. Else of a hundred bindings one at most may lack it.
func (s *story) check(with bool, o outcome, pods int) {
	s.Helper()
	switch {
	case o.bound != pods:
		s.Errorf("%d pods are bound of %d", o.bound, pods)
	case with && (o.answered > 0 || o.unanswered >= pods), with && !testing.Short() && (o.beyond > 0 || o.unanswered > pods/100):
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
	last := k.run(pods, schedulers[0])
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
	core.Begin(t)
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
	core.Begin(t)
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
