// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubectl/pkg/drain"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// keeps makes a disruption budget that wants so many pods.
func (s *story) keeps(app string, pods int) {
	s.Helper()
	s.make(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(int32(pods))), Selector: selects(app)},
	})
	becomes(s, app, "the budget to be counted", func(b *policyv1.PodDisruptionBudget) error {
		uncounted := b.Status.ObservedGeneration < b.Generation
		return errorIf(uncounted || int(b.Status.CurrentHealthy) < pods, "%d of %d pods are healthy", b.Status.CurrentHealthy, pods)
	})
}

// drain does what kubectl drain does, with its own code, for so long at most.
func (s *story) drain(node string, limit time.Duration) error {
	s.Helper()
	said := &strings.Builder{}
	helper := &drain.Helper{Ctx: s.ctx, Client: s.client, GracePeriodSeconds: -1, Timeout: limit, IgnoreAllDaemonSets: true, Out: io.Discard, ErrOut: said}
	n := get[corev1.Node](s, node)
	s.must(drain.RunCordonOrUncordon(helper, n, true), "cordoning "+node)
	begun := time.Now()
	if err := drain.RunNodeDrain(helper, node); err != nil {
		return fmt.Errorf("draining %s: %w\n%s", node, err, said)
	}
	s.Logf("%s was drained in %s", node, time.Since(begun).Round(100*time.Millisecond))
	return nil
}

// drained drains a node.
func (s *story) drained(node string) {
	s.Helper()
	if err := s.drain(node, timeout); err != nil {
		s.Fatal(err)
	}
}

// neverBelow watches the pods of an app, and fails the story if fewer are ready than wanted, until the returned function is called.
func (s *story) neverBelow(app string, wanted int) (stop func()) {
	s.Helper()
	return s.neverOutside(app, wanted, math.MaxInt)
}

// neverOutside is neverBelow, and fails the story as well if there are more than so many pods that are not being deleted.
func (s *story) neverOutside(app string, wanted, most int) (stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	w, err := s.client.CoreV1().Pods(s.ns).Watch(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	s.must(err, "watching pods")
	var watching sync.WaitGroup
	watching.Go(func() {
		there, ready, lowest, highest, once := make(map[string]bool), make(map[string]bool), wanted, 0, false
		for e := range w.ResultChan() {
			pod, is := e.Object.(*corev1.Pod)
			if !is {
				continue
			}
			delete(there, pod.Name)
			delete(ready, pod.Name)
			if e.Type != watch.Deleted && pod.DeletionTimestamp == nil {
				there[pod.Name] = true
				if isReady(pod) == nil {
					ready[pod.Name] = true
				}
			}
			highest = max(highest, len(there))
			if once = once || len(ready) >= wanted; once {
				lowest = min(lowest, len(ready))
			}
		}
		if !once || lowest < wanted {
			s.Errorf("at the lowest %d of %d pods were ready", lowest, wanted)
		}
		if highest > most {
			s.Errorf("at the highest there were %d pods, more than %d", highest, most)
		}
	})
	stop = func() {
		cancel()
		w.Stop()
		watching.Wait()
	}
	s.Cleanup(stop)
	return stop
}

// moved fails the story unless all of its Moves have ended as they should, and there are so many at the least.
func (s *story) moved(want int, phase placementv1alpha1.MovePhase) {
	s.Helper()
	// Those of one Deployment are handed back one after the other, and the controller does this for all stories.
	s.untilWithin(timeout+time.Duration(want)*10*time.Second, fmt.Sprintf("%d Moves to be %s", want, phase), func() error {
		moves := s.moves()
		for _, m := range moves {
			if m.Status.Phase != phase {
				return fmt.Errorf("%s is %s: %s", m.Name, m.Status.Phase, m.Status.Message)
			}
		}
		return errorIf(len(moves) < want, "there are %d", len(moves))
	})
}

// moveOf is a Move of a pod as a spec says, but for what it is of.
func (s *story) moveOf(pod *corev1.Pod, spec placementv1alpha1.MoveSpec) *placementv1alpha1.Move {
	set := metav1.GetControllerOf(pod)
	spec.Pod = placementv1alpha1.ObjectReference{Name: pod.Name, UID: string(pod.UID)}
	spec.ReplicaSet = placementv1alpha1.ObjectReference{Name: set.Name, UID: string(set.UID)}
	m := named[placementv1alpha1.Move](s, pod.Name)
	m.Spec = spec
	return m
}

// move has a pod moved, as the controller does: the Move is the Deployment's.
func (s *story) move(pod *corev1.Pod, spec placementv1alpha1.MoveSpec) {
	s.Helper()
	m := s.moveOf(pod, spec)
	d := get[appsv1.Deployment](s, pod.Labels["app"])
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	s.make(m)
}

// A single replica with a budget that wants it: kubectl drain would wait for ever, and does where the stock scheduler has placed it. Nobody
// writes the number of replicas.
func TestDrainOfASingleReplica(t *testing.T) {
	s := begin(t, moves.core(), byZone)
	s.zones(20, 1, 1)
	if *wholeFlag {
		s.must(startStock(), "starting the stock scheduler")
		stock := s.deployed("stock", 1, "", by(corev1.DefaultSchedulerName)).Pods[0]
		s.keeps("stock", 1)
		if err := s.drain(stock.Spec.NodeName, 2*time.Minute); err == nil || !strings.Contains(err.Error(), "disruption budget") {
			t.Errorf("the stock scheduler's pod is to be kept by its disruption budget: %v", err)
		}
		if after := s.settled("stock", 1).Pods[0]; after.UID != stock.UID {
			t.Errorf("the stock scheduler's pod %s is another one, %s", stock.Name, after.Name)
		}
		s.cordon(false, stock.Spec.NodeName)
		s.deleted("stock") // or it would keep the next drain waiting too
	}
	node := s.deployed("app", 1, "").Pods[0].Spec.NodeName
	s.keeps("app", 1)
	stop := s.neverOutside("app", 1, 2)
	s.drained(node)
	o := s.settled("app", 1)
	stop()
	s.eachHas(o, 0, node)
	s.moved(1, placementv1alpha1.MoveDone)
	s.wroteNoReplicas("app")
	if changes, ok := s.wrote(); ok && changes["patch pods"] != 1 { // who of the two evicts it is a matter of luck
		t.Errorf("the pod is to be handed over, and no other change is to be made: %v", changes)
	}
}

// 30 pods of ten Deployments, none of which may be missed. There is never more than the one pod too many that maxSurge allows.
func TestDrainOfAFullNode(t *testing.T) {
	s := begin(t, moves, byZone)
	node := s.nodes(1, 40, zone("zone-a"))[0]
	var stops []func()
	for i := range 10 {
		app := fmt.Sprint("app-", i)
		s.deployed(app, 3, "")
		s.keeps(app, 3)
		stops = append(stops, s.neverOutside(app, 3, 4))
	}
	s.nodes(2, 40, zone("zone-b"))
	s.drained(node)
	for i, stop := range stops {
		o := s.settled(fmt.Sprint("app-", i), 3)
		stop()
		s.eachHas(o, 0, node)
	}
	// While one pod too many is ready, the drain evicts another one of the same Deployment by itself.
	s.moved(10, placementv1alpha1.MoveDone)
}

// moveAnnotations are on pods while they are moved.
var moveAnnotations = []string{
	"espalier.dev/cost-before-move", "espalier.dev/made-evictable", "espalier.dev/removed-for-move", "cluster-autoscaler.kubernetes.io/safe-to-evict",
}

// Where the other pod has no room, nothing is lost: the pod is its ReplicaSet's again, with the same UID.
func TestMoveIsUndone(t *testing.T) {
	s := begin(t, moves.core(), byZone)
	node := s.nodes(1, 1, zone("zone-a"))[0]
	before := s.deployed("app", 1, "").Pods[0]
	s.keeps("app", 1)
	stop := s.neverBelow("app", 1)
	s.move(&before, placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveRebalance, DeadlineSeconds: 10})
	s.moved(1, placementv1alpha1.MoveUndone)
	after := s.settled("app", 1).Pods[0]
	stop()
	if after.UID != before.UID || after.Spec.NodeName != node || !after.Status.StartTime.Equal(before.Status.StartTime) {
		t.Errorf("pod %s is there, started at %s, and not %s", after.Name, after.Status.StartTime, before.Name)
	}
	for _, key := range moveAnnotations {
		if value, there := after.Annotations[key]; there {
			t.Errorf("it still has %s: %s", key, value)
		}
	}
	if is, was := after.Annotations[corev1.PodDeletionCost], before.Annotations[corev1.PodDeletionCost]; is != was {
		t.Errorf("its deletion cost is %q, and was %q", is, was)
	}
}

// The image of the other pod cannot be pulled where it lands. The pod is handed back, as if nothing had been, and tried again after ten
// minutes, when all is well.
func TestMoveIsTriedAgain(t *testing.T) {
	s := begin(t, moves, byZone)
	s.needsFailures()
	node := s.nodes(1, 1, zone("zone-a"))[0]
	before := s.deployed("app", 1, "").Pods[0]
	s.keeps("app", 1)
	bad := s.nodes(1, 20, zone("zone-b"))[0]
	s.fail("image", bad)
	stop := s.neverOutside("app", 1, 2)
	s.move(&before, placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDrain, DeadlineSeconds: 30})
	s.until("the other pod to fail", func() error {
		for name, p := range s.podsOn("app", bad) {
			if len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil {
				s.Logf("pod %s: %s", name, p.Status.ContainerStatuses[0].State.Waiting.Reason)
				return nil
			}
		}
		return errors.New("it does not")
	})
	s.moved(1, placementv1alpha1.MoveUndone)
	after := s.settled("app", 1).Pods[0]
	if after.UID != before.UID || after.Spec.NodeName != node || !after.Status.StartTime.Equal(before.Status.StartTime) {
		t.Errorf("pod %s is there, started at %s, and not %s", after.Name, after.Status.StartTime, before.Name)
	}
	undone := s.moves()[0].Status.EndedAt
	s.heal(bad)
	s.cordon(true, node)
	s.stillFor(1, 9*time.Minute)
	if *wholeFlag {
		s.untilWithin(3*time.Minute, "the pod to be replaced", func() error {
			n := len(s.podsOn("app", node))
			return errorIf(n > 0, "%d pods are on %s", n, node)
		})
		for _, m := range s.moves() {
			if m.CreationTimestamp.After(undone.Time) {
				s.Logf("it was tried again %s after it had been handed back", m.CreationTimestamp.Sub(undone.Time))
			}
		}
	}
	stop()
	s.settled("app", 1)
}

// Whatever somebody else does to the Deployment while pods of it are moved, it ends with the pods that are wanted, and each Move ends.
func TestDeploymentChangesWhilePodsAreMoved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		label  label
		change func(s *story)
		pods   int
	}{
		"scaled-up":   {moves, func(s *story) { s.scale("app", 9) }, 9},
		"scaled-down": {moves, func(s *story) { s.scale("app", 2) }, 2},
		"scaled-away": {moves, func(s *story) { s.scale("app", 0) }, 0},
		"rolled":      {moves, func(s *story) { s.roll("app", "2") }, 6},
		"rolled-and-scaled": {moves.core(), func(s *story) {
			s.roll("app", "2")
			s.scale("app", 4)
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, tc.label, byZone)
			s.zones(20, 2, 2)
			s.deploy("app", 6, "")
			s.movedWhile("app", 6, 2, func() { tc.change(s) })
			o := s.settled("app", tc.pods)
			for i := range o.Pods {
				if owner := metav1.GetControllerOf(&o.Pods[i]); owner.Kind != "ReplicaSet" {
					t.Errorf("pod %s is of %s %s", o.Pods[i].Name, owner.Kind, owner.Name)
				}
			}
		})
	}
}

// movedWhile moves so many of the pods of an app, does something as soon as one is being replaced, and waits until all Moves have ended.
func (s *story) movedWhile(app string, pods, moved int, change func()) {
	s.Helper()
	all := s.settled(app, pods).Pods
	before := s.moves()
	of := slices.DeleteFunc(all, func(p corev1.Pod) bool { // those that were handed back before are left alone
		return slices.ContainsFunc(before, func(m placementv1alpha1.Move) bool { return m.Name == p.Name })
	})[:moved]
	for i := range of {
		s.move(&of[i], placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDrain, DeadlineSeconds: 20})
	}
	phases := func() (all []placementv1alpha1.MovePhase) {
		for _, m := range s.moves() {
			if slices.ContainsFunc(of, func(p corev1.Pod) bool { return p.Name == m.Name }) {
				all = append(all, m.Status.Phase)
			}
		}
		return all
	}
	s.until("a pod to be replaced", func() error {
		all := phases()
		begun := slices.ContainsFunc(all, func(p placementv1alpha1.MovePhase) bool { return p != "" && p != placementv1alpha1.MovePlanned })
		return errorIf(!begun, "its Moves are %v", all)
	})
	change()
	s.until("the Moves to end", func() error {
		all := phases()
		return errorIf(slices.ContainsFunc(all, func(p placementv1alpha1.MovePhase) bool { return !p.Ended() }), "they are %v", all)
	})
}
