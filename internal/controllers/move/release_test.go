// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// A pod that was handed over when its Move had ended is handed back before the Move goes.
func TestPodOfAMoveThatHasEnded(t *testing.T) {
	m := moveOf("p")
	m.Status = placementv1alpha1.MoveStatus{Phase: placementv1alpha1.MoveFailed, EndedAt: new(metav1.NewTime(noon))}
	pod := &corev1.Pod{ObjectMeta: controllertest.Named("p")}
	pod.Annotations = map[string]string{safeToEvict: "true", clusterview.MadeEvictableAnnotation: "true", corev1.PodDeletionCost: "-3"}
	pod.OwnerReferences = controllertest.OwnedBy(Kind, "move")
	rig := controllertest.New(t, noon.Add(2*time.Hour), controllertest.Builder(t, m, pod))
	r := &Reconciler{Client: rig.Server, API: rig.Server, Clock: rig.Time}
	for _, there := range []bool{true, false} { // first the pod, then the Move
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		rig.Must(err)
		rig.Get(pod)
		if owner := metav1.GetControllerOfNoCopy(pod); owner == nil || owner.UID != "web-1" || len(pod.Annotations) != 1 || pod.Annotations[corev1.PodDeletionCost] != "-3" {
			t.Errorf("the pod is of %v, with annotations %v", owner, pod.Annotations)
		}
		if moves := rig.Moves(); len(moves) == 1 != there {
			t.Errorf("there are %d Moves, want one: %t", len(moves), there)
		}
	}
}

// moveOf is a Move of a pod of ReplicaSet web-1.
func moveOf(pod string) *placementv1alpha1.Move {
	return &placementv1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: pod, UID: "move", CreationTimestamp: metav1.NewTime(noon)},
		Spec: placementv1alpha1.MoveSpec{
			Pod: placementv1alpha1.ObjectReference{Name: pod, UID: pod}, ReplicaSet: placementv1alpha1.ObjectReference{Name: "web-1", UID: "web-1"},
			Reason: placementv1alpha1.MoveDrain, DeadlineSeconds: 600,
		},
	}
}

// While a pod is moved its ReplicaSet is one of its owners, though not its controller, and as before when the pod is back. A Move that somebody has
// made by hand goes with the Deployment as well.
func TestOwnersOfAPodThatIsMoved(t *testing.T) {
	o := &objects{move: moveOf("by-hand"), pod: podOf("p", "ReplicaSet", "web-1")}
	o.pod.OwnerReferences = append([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "beside", UID: "beside"}}, o.pod.OwnerReferences...)
	o.deployment, _ = controllertest.Deployment("web", 3, 1)
	rig := controllertest.New(t, noon, controllertest.Builder(t, o.move, o.pod))
	r := &Reconciler{Client: rig.Server, API: rig.Server}
	for _, step := range []struct {
		do                 action
		owners, controller string
	}{{handOver, "beside web-1", "web-1"}, {handOver, "beside move web-1", "move"}, {handBack, "beside web-1", "web-1"}} {
		rig.Get(o.move)
		rig.Get(o.pod)
		rig.Must(r.act(t.Context(), o, step.do))
		is := o.pod.DeepCopy()
		rig.Get(is)
		var owners []string
		for _, by := range is.OwnerReferences {
			owners = append(owners, string(by.UID))
		}
		if got := strings.Join(owners, " "); got != step.owners || metav1.GetControllerOf(is).UID != types.UID(step.controller) {
			t.Errorf("it is of %s, and its controller is %v; want %s and %s", got, metav1.GetControllerOf(is), step.owners, step.controller)
		}
	}
	if by := metav1.GetControllerOf(o.move); !slices.Contains(o.move.Finalizers, finalizer) || by == nil || by.Kind != "Deployment" || by.UID != "web" {
		t.Errorf("the Move is of %v, with the finalizers %v", by, o.move.Finalizers)
	}
}

// A pod that was handed back after it was read is not evicted.
func TestEvictsWhatItHolds(t *testing.T) {
	for owner, stays := range map[string]bool{"move": false, "web-1": true} {
		pod := podOf("p", "ReplicaSet", owner)
		api := controllertest.Builder(t, pod).Build()
		r := &Reconciler{Client: api, API: api}
		controllertest.Must(t, r.evict(t.Context(), moveOf("p")))
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); apierrors.IsNotFound(err) == stays {
			t.Errorf("the pod of %s: %v", owner, err)
		}
	}
}

// A look that is late evicts no pod whose Move was deleted, was made anew, or has ended since the look read it.
func TestLateLookEvictsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*stateful, *placementv1alpha1.Move)
		stays     bool
	}{
		"nothing":    {func(*stateful, *placementv1alpha1.Move) {}, false},
		"it is gone": {func(s *stateful, m *placementv1alpha1.Move) { s.Delete(m) }, true},
		"another one": {func(s *stateful, m *placementv1alpha1.Move) {
			s.Delete(m)
			again := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: "another"}, Spec: m.Spec}
			s.Create(again)
		}, true},
		"it is being deleted": {func(s *stateful, m *placementv1alpha1.Move) {
			m.Finalizers = []string{"example.com/stay"}
			s.Must(s.Server.Update(t.Context(), m))
			s.Delete(m)
		}, true},
		"it has failed": {func(s *stateful, m *placementv1alpha1.Move) {
			m.Status.Phase = placementv1alpha1.MoveFailed
			s.Must(s.Server.Status().Update(t.Context(), m))
		}, true},
	} {
		s := newStateful(t)
		pods, _ := s.pods()
		late := s.look(s.move(&pods[0]), 1)
		tc.meanwhile(s, late.DeepCopy())
		s.Must(s.evict(t.Context(), late))
		if left, _ := s.pods(); late.Status.Phase != placementv1alpha1.MoveEvicting || (len(left) == replicas) != tc.stays {
			t.Errorf("%s: the Move was %s, and %d pods are left", name, late.Status.Phase, len(left))
		}
	}
}

// A pod that waits for its budget stays if that for which it was to be evicted first is over until it may go.
func TestNeedlessEvictions(t *testing.T) {
	const drain, restart = placementv1alpha1.MoveDrain, placementv1alpha1.MoveRestart
	taints := func(key string, effect corev1.TaintEffect) func(*corev1.Node, *corev1.Pod) {
		return func(n *corev1.Node, _ *corev1.Pod) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
	}
	readies := func(_ *corev1.Node, p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }
	candidate := taints("DeletionCandidateOfClusterAutoscaler", corev1.TaintEffectPreferNoSchedule)
	for name, tc := range map[string]struct {
		reason placementv1alpha1.MoveReason
		change func(*corev1.Node, *corev1.Pod)
		stays  string
	}{
		"nothing has changed":           {drain, func(*corev1.Node, *corev1.Pod) {}, ""},
		"it fails still":                {restart, func(*corev1.Node, *corev1.Pod) {}, ""},
		"it is ready, and drained":      {drain, readies, ""},
		"it is ready again":             {restart, readies, "the pod is ready again"},
		"its node is not drained":       {drain, func(n *corev1.Node, _ *corev1.Pod) { n.Spec.Unschedulable = false }, "nobody is about to remove its node any more"},
		"its node may be removed later": {drain, func(n *corev1.Node, p *corev1.Pod) { n.Spec.Unschedulable = false; candidate(n, p) }, "its node would take it again"},
		"its node never was drained":    {restart, func(n *corev1.Node, _ *corev1.Pod) { n.Spec.Unschedulable = false }, ""},
		"its node does not answer":      {drain, taints(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute), "its node does not answer"},
		"nor do most of its zone":       {restart, taints(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule), "its node does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStateful(t)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
			s.Create(node)
			pods, _ := s.pods()
			s.unready(&pods[0])
			s.allows = false
			m := s.moveFor(&pods[0], tc.reason)
			if is := s.look(m, 2); is.Status.Phase != placementv1alpha1.MoveEvicting {
				t.Fatalf("it is %s: %s", is.Status.Phase, is.Status.Message)
			}
			tc.change(node, &pods[0])
			s.Must(s.Server.Update(t.Context(), node))
			s.Must(s.Server.Status().Update(t.Context(), &pods[0]))
			s.allows = true
			is := s.look(m, 3)
			left, _ := s.pods()
			if (len(left) == replicas) != (tc.stays != "") || tc.stays != "" && (is.Status.Phase != placementv1alpha1.MoveFailed || is.Status.Message != tc.stays) {
				t.Errorf("there are %d pods, and the Move is %s: %s", len(left), is.Status.Phase, is.Status.Message)
			}
		})
	}
}

func costing(cost string) map[string]string {
	if cost == "" {
		return map[string]string{}
	}
	return map[string]string{corev1.PodDeletionCost: cost}
}

// A pod that was moved has its own cost again. What somebody has written meanwhile, as Karpenter does for nodes that it is about to remove, is not ours
// to change; nor is the cost of a pod that was handed over and not given another one.
func TestCostsAreRestored(t *testing.T) {
	const karpenters = "-2147483648"
	for _, before := range []string{"", "-3", karpenters} {
		for _, ours := range []int{keptCost, goneCost, goneCostBefore} {
			for meanwhile, want := range map[string]string{"": before, karpenters: karpenters, "7": "7"} {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: costing(before)}}
				setCost(p, ours)
				if p.Annotations[corev1.PodDeletionCost] != strconv.Itoa(ours) {
					t.Errorf("it costs %q, want %d", p.Annotations[corev1.PodDeletionCost], ours)
				}
				if meanwhile != "" {
					p.Annotations[corev1.PodDeletionCost] = meanwhile
				}
				if restore(p); !maps.Equal(p.Annotations, costing(want)) {
					t.Errorf("with %q before and %q meanwhile it has %v", before, meanwhile, p.Annotations)
				}
			}
		}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: costing(before)}}
		if restore(p); !maps.Equal(p.Annotations, costing(before)) {
			t.Errorf("with %q before, and nothing changed, it has %v", before, p.Annotations)
		}
	}
}

// A pod that is given another cost while it has one of a Move's has its own again all the same.
func TestCostsAreKeptOnce(t *testing.T) {
	for _, before := range []string{"", "-3"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: costing(before)}}
		setCost(p, keptCost)
		setCost(p, goneCost)
		if restore(p); !maps.Equal(p.Annotations, costing(before)) {
			t.Errorf("with %q before it has %v", before, p.Annotations)
		}
	}
}

// A pod that is the one to go for another Move has the marks of that one. If its own Move took them off they would be put there again, and again.
func TestMarksOfAnotherMoveStay(t *testing.T) {
	for by, want := range map[string]step{
		"":        {phase: placementv1alpha1.MoveUndoing, action: restoreCost},
		"another": {phase: placementv1alpha1.MoveUndone, action: wait},
	} {
		pod := podOf("p", "ReplicaSet", "web-1")
		pod.UID, pod.Annotations = "p", map[string]string{}
		setCost(pod, keptCost)
		if by != "" {
			pod.Annotations[clusterview.RemovedForMoveAnnotation] = by
		}
		o := &objects{
			move: &placementv1alpha1.Move{Status: placementv1alpha1.MoveStatus{Phase: placementv1alpha1.MoveUndoing}},
			set:  &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "web-1"}}, pod: pod, pods: []corev1.Pod{*pod},
		}
		o.move.Spec.ReplicaSet.UID = "web-1"
		if s := next(o.facts(noon)); s.phase != want.phase || s.action != want.action {
			t.Errorf("marked for %q: %+v", by, s)
		}
	}
}

// What a Move has left on pods that is gone is taken off them, and what one has put there that is busy stays.
func TestSweep(t *testing.T) {
	pod := func(name, removedFor string, cost int) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: controllertest.Named(name)}
		p.Annotations = costing("-3")
		if cost != 0 {
			setCost(p, cost)
		}
		if removedFor != "" {
			p.Annotations[clusterview.RemovedForMoveAnnotation] = removedFor
		}
		return p
	}
	move := func(name, of string, phase placementv1alpha1.MovePhase) *placementv1alpha1.Move {
		m := &placementv1alpha1.Move{ObjectMeta: controllertest.Named(name), Status: placementv1alpha1.MoveStatus{Phase: phase}}
		m.Spec.Pod = placementv1alpha1.ObjectReference{Name: of, UID: of}
		return m
	}
	// Which pods keep their marks.
	marked := map[string]bool{"original": true, "replacement": true, "of-ended": false, "back-from-none": false, "of-none": false, "evictable": false, "moved": true}
	evictable := func(name string) *corev1.Pod {
		p := pod(name, "", 0)
		p.Annotations[safeToEvict], p.Annotations[clusterview.MadeEvictableAnnotation] = "true", "true"
		return p
	}
	api := controllertest.Builder(t,
		move("busy", "original", placementv1alpha1.MoveUndoing), move("ended", "x", placementv1alpha1.MoveUndone),
		pod("original", "", keptCost), pod("replacement", "busy", goneCost), pod("of-ended", "ended", goneCost), pod("back-from-none", "", keptCost), pod("of-none", "none", goneCost),
		pod("never", "", 0), evictable("evictable"), evictable("moved"), move("replacing", "moved", placementv1alpha1.MoveReplacing),
	).Build()
	r := &Reconciler{Client: api, API: api}
	controllertest.Must(t, r.sweep(t.Context()))
	var pods corev1.PodList
	controllertest.Must(t, api.List(t.Context(), &pods, client.InNamespace("ns")))
	for _, p := range pods.Items {
		if is := !maps.Equal(p.Annotations, costing("-3")); is != marked[p.Name] {
			t.Errorf("pod %s has %v", p.Name, p.Annotations)
		}
	}
}
