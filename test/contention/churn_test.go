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
	s.until("195 pods to run", ours, func() error {
		if running, _ := k.running(); running < 195 {
			return fmt.Errorf("%d do", running)
		}
		return nil
	})
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
	s.until("190 pods to run", schedulers[rig.SchedulerName], func() error {
		if running, _ := k.running(); running < 190 {
			return fmt.Errorf("%d do", running)
		}
		return nil
	})
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
