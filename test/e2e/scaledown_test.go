// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// scaled has a scheduler place a Deployment, scales it, and returns what is left.
func (s *story) scaled(scheduler string, from, to int, change ...func(*corev1.PodSpec)) *rig.Observation {
	s.Helper()
	s.deploy("app", int32(from), "", append(change, by(scheduler))...)
	s.settled("app", from)
	s.available("app", "the pods to be known to be ready")
	s.scale("app", to)
	return s.settled("app", to)
}

func (s *story) deleted(app string) {
	s.Helper()
	s.delete(named[appsv1.Deployment](s, app))
	s.settled(app, 0)
}

// 61 pods over unequal zones, scaled in one step: the ReplicaSet's controller removes where most pods share a node, and so
// from the smallest zone. With deletion costs it removes what came last.
func TestScaleDownUnequalZones(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 10, 5, 2)
	s.must(startStock(), "starting the stock scheduler")
	for to, want := range map[int][]int{31: {11, 10, 10}, 41: {14, 14, 13}} {
		stock := s.scaled(corev1.DefaultSchedulerName, 61, to)
		s.Logf("61 to %d with the stock scheduler:\n%s", to, stock.Draw())
		s.deleted("app")
		ours := s.scaled(s.scheduler, 61, to)
		s.Logf("61 to %d with ours:\n%s", to, ours.Draw())
		s.counts(ours, 0, want...)
		s.even(ours)
		if is, was := skew(ours), skew(stock); is > was {
			t.Errorf("61 to %d: zones differ by %d pods, and by %d with the stock scheduler", to, is, was)
		}
		if to == 31 {
			s.beside(evennessCases[3], byZones(stock), byZones(ours))
		}
		s.deleted("app")
	}
}

// What a ReplicaSet's controller leaves by itself of an even spread: it ranks pods by how many share their node, once for all that it removes.
func TestScaleDownWithoutCosts(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 10, 5, 2)
	s.removedInAnyOrder("app")
	for to, want := range map[int][]int{31: {21, 10, 0}, 41: {21, 20, 0}} {
		s.counts(s.scaled(s.scheduler, 61, to), 0, want...)
		s.deleted("app")
	}
}

// Even after each of 30 single steps.
func TestScaleDownOneByOne(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 10, 5, 2)
	s.must(startStock(), "starting the stock scheduler")
	for _, scheduler := range []string{corev1.DefaultSchedulerName, s.scheduler} {
		s.deployed("app", 61, "", by(scheduler))
		s.available("app", "the pods to be known to be ready")
		worst, last := 0, ""
		for pods := 60; pods >= 31; pods-- {
			s.scale("app", pods)
			o := s.settled("app", pods)
			if worst, last = max(worst, skew(o)), byZones(o); scheduler == s.scheduler {
				s.even(o)
			}
		}
		s.Logf("%s: zones have %s in the end, and have differed by %d pods", scheduler, last, worst)
		s.deleted("app")
	}
}

// 30 pods over three equal zones, scaled to three, 20 times: never a zone without a pod. By the order of UIDs that is three times in four.
func TestScaleDownToThree(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 3, 3, 3)
	s.must(startStock(), "starting the stock scheduler")
	empty := 0
	for range times(20) {
		if skew(s.scaled(corev1.DefaultSchedulerName, 30, 3)) > 0 {
			empty++
		}
		s.deleted("app")
		s.counts(s.scaled(s.scheduler, 30, 3), 0, 1, 1, 1)
		s.deleted("app")
	}
	s.Logf("with the stock scheduler a zone was left without a pod %d times of %d", empty, times(20))
	if *wholeFlag && empty == 0 {
		t.Error("the stock scheduler has left no zone without a pod: this told nothing")
	}
}

// 20 pods become three the moment the last one is ready: their costs are as old as their bindings. Beside it, for the record, is a controller
// that writes the same costs when pods are ready: it may be too late.
func TestScaleDownTheMomentAllAreReady(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 3, 3, 3)
	s.removedInAnyOrder("late")
	patched := s.costsWhenReady("late")
	race := func(app string) *rig.Observation {
		s.Helper()
		s.deploy(app, 20, "")
		ready, err := s.client.CoreV1().Pods(s.ns).Watch(s.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		s.must(err, "watching pods")
		s.untilReady(ready, 20)
		o := s.scaledTo(app, 3)
		s.deleted(app)
		return o
	}
	lost := 0
	for range times(50) {
		s.counts(race("app"), 0, 1, 1, 1)
		if skew(race("late")) > 0 {
			lost++
		}
	}
	s.wroteNoPods()
	s.Logf("whoever writes costs when pods are ready has lost %d times of %d, with %d writes", lost, times(50), patched.Load())
}

// costsWhenReady gives the pods of an app costs when they are ready, as a controller does that has no part in their binding. It counts what
// it writes.
func (s *story) costsWhenReady(app string) *atomic.Int64 {
	s.Helper()
	zones := s.zoneOf()
	pods, err := s.client.CoreV1().Pods(s.ns).Watch(s.ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	s.must(err, "watching pods")
	written := &atomic.Int64{}
	var writing sync.WaitGroup
	writing.Go(func() {
		// The pods of a zone that are ready, with the lowest numbers that were free when they became so.
		numbers := make(map[string]map[string]int)
		for e := range pods.ResultChan() {
			p, is := e.Object.(*corev1.Pod)
			if !is {
				continue
			}
			of := numbers[zones[p.Spec.NodeName]]
			if of == nil {
				of = make(map[string]int)
				numbers[zones[p.Spec.NodeName]] = of
			}
			if e.Type == watch.Deleted {
				delete(of, p.Name)
				continue
			}
			if _, known := of[p.Name]; known || isReady(p) != nil || p.DeletionTimestamp != nil {
				continue
			}
			of[p.Name] = lowestFree(of)
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, corev1.PodDeletionCost, -of[p.Name])
			if _, err := s.client.CoreV1().Pods(s.ns).Patch(s.ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
				written.Add(1) // else the pod is gone already
			}
		}
	})
	s.Cleanup(func() {
		pods.Stop()
		writing.Wait()
	})
	return written
}

// lowestFree is the lowest number from 1 on that none has.
func lowestFree(numbers map[string]int) int {
	taken := slices.Sorted(maps.Values(numbers))
	for i, n := range taken {
		if n != i+1 {
			return i + 1
		}
	}
	return len(taken) + 1
}

// untilReady returns with the event that makes so many pods ready.
func (s *story) untilReady(events watch.Interface, pods int) {
	s.Helper()
	defer events.Stop()
	ready := make(map[string]bool)
	for limit := time.After(timeout); len(ready) < pods; {
		select {
		case e, open := <-events.ResultChan():
			pod, is := e.Object.(*corev1.Pod)
			if !open || !is {
				s.Fatalf("the watch of pods has ended: %v", e)
			}
			if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
				ready[pod.Name] = true
			}
		case <-limit:
			s.Fatalf("%d of %d pods were ready after %s", len(ready), pods, timeout)
		}
	}
}

// Each revision is even by itself when a Deployment is scaled down in the middle of a rolling update.
func TestScaleDownWhileRolling(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.zones(50, 10, 5, 2)
	s.deployed("app", 60, "")
	// As many of the new pods start as the surge and what may be unavailable let through, and then none: no pod is available before an hour.
	s.patch("app", `{"spec":{"minReadySeconds":3600,"progressDeadlineSeconds":7200,"template":{"metadata":{"annotations":{"e2e.espalier.dev/revision":"2"}}}}}`)
	becomes(s, "app", "new pods", func(d *appsv1.Deployment) error {
		there, not := d.Status.UpdatedReplicas, d.Status.UnavailableReplicas
		return errorIf(there < 15 || not < 15, "%d are there, %d are not available", there, not)
	})
	s.scale("app", 20)
	zones := s.zoneOf()
	s.until("each revision to be even", func() error {
		pods := s.podsOf("app")
		if len(pods) > 25 {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		revisions := make(map[string]map[string]int)
		for _, p := range pods {
			revision := p.Labels["pod-template-hash"]
			if revisions[revision] == nil {
				revisions[revision] = map[string]int{"zone-a": 0, "zone-b": 0, "zone-c": 0}
			}
			revisions[revision][zones[p.Spec.NodeName]]++
		}
		for revision, zones := range revisions {
			counts := slices.Collect(maps.Values(zones))
			if slices.Max(counts)-slices.Min(counts) > 1 {
				return fmt.Errorf("revision %s has %v", revision, zones)
			}
		}
		if len(revisions) != 2 {
			return rig.Never(fmt.Errorf("there are %d revisions", len(revisions)))
		}
		return nil
	})
}

// Three nodes die and their pods are replaced. What is left after that is even, and nobody has written to a pod.
func TestScaleDownAfterLoss(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	all := s.zones(50, 4, 4, 4)
	s.deployed("app", 60, "")
	s.lose(all[0][0], all[0][1], all[1][0])
	s.settled("app", 60)
	s.available("app", "the pods to be known to be ready") // those that are not go first
	s.counts(s.scaledTo("app", 20), 0, 7, 7, 6)
	s.wroteNoPods()
}

// Nobody of ours writes to a pod but by its binding, however it is scaled.
func TestScaleDownWritesNoPods(t *testing.T) {
	s := begin(t, spread, byZone)
	s.zones(50, 10, 10, 10)
	s.deploy("app", 0, "")
	for _, pods := range []int{1000, 300, 1000} {
		s.scale("app", pods)
		s.even(s.settled("app", pods))
		s.available("app", "the pods to be known to be ready")
	}
	s.wroteNoPods()
}
