// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// handedBack is a Deployment of three pods, whose nodes did not answer and are back. Each has been replaced: the last one a while after the
// others.
type handedBack struct {
	*rapid.T
	client client.Client
	set    *appsv1.ReplicaSet
	moves  []string
}

const originals = 3

func newHandedBack(t *rapid.T) *handedBack {
	h := &handedBack{T: t}
	meta := func(name string, second int) metav1.ObjectMeta {
		m := controllertest.Named(name)
		m.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(second) * time.Second))
		return m
	}
	deployment, set := controllertest.Deployment("web", originals, 1)
	set.Spec = appsv1.ReplicaSetSpec{Replicas: new(int32(originals)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	h.set = set
	all := []client.Object{
		deployment, h.set,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}},
	}
	pod := func(name string, second int, owners []metav1.OwnerReference) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: meta(name, second), Spec: corev1.PodSpec{NodeName: "n"}}
		p.Labels, p.OwnerReferences = map[string]string{"app": "web"}, owners
		p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return p
	}
	for i := range originals {
		second := 10
		if i == originals-1 {
			second = 12
		}
		m := &placementv1alpha1.Move{ObjectMeta: meta(fmt.Sprintf("move-%d", i), second), Status: placementv1alpha1.MoveStatus{Phase: placementv1alpha1.MoveWaiting}}
		m.Finalizers = []string{finalizer}
		p := pod(fmt.Sprintf("original-%d", i), 1, controllertest.OwnedBy(Kind, m.Name))
		m.Spec = placementv1alpha1.MoveSpec{
			Pod: placementv1alpha1.ObjectReference{Name: p.Name, UID: p.Name}, ReplicaSet: placementv1alpha1.ObjectReference{Name: "web-1", UID: "web-1"},
			Reason: placementv1alpha1.MoveDisconnect, Keep: placementv1alpha1.KeepOriginal, DeadlineSeconds: 600,
		}
		h.moves = append(h.moves, m.Name)
		all = append(all, m, p, pod(fmt.Sprintf("replacement-%d", i), second, controllertest.OwnedBy("ReplicaSet", "web-1")))
	}
	h.client = controllertest.Builder(t, all...).Build()
	return h
}

// get reads an object by its name.
func (h *handedBack) get(o client.Object) {
	h.Helper()
	controllertest.Must(h, h.client.Get(h.Context(), client.ObjectKeyFromObject(o), o))
}

// replicate removes what is too many, as the controller of ReplicaSets does: any of those with the lowest cost.
func (h *handedBack) replicate() {
	var pods corev1.PodList
	controllertest.Must(h, h.client.List(h.Context(), &pods))
	byCost, own := make(map[int][]string), 0
	for i := range pods.Items {
		p := &pods.Items[i]
		if !metav1.IsControlledBy(p, h.set) {
			continue
		}
		cost, _ := strconv.Atoi(p.Annotations[corev1.PodDeletionCost]) // none is 0
		byCost[cost] = append(byCost[cost], p.Name)
		own++
	}
	if own <= originals {
		return
	}
	removed := rapid.SampledFrom(byCost[slices.Min(slices.Collect(maps.Keys(byCost)))]).Draw(h.T, "removed")
	controllertest.Must(h, h.client.Delete(h.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: removed}}))
}

// fewer has a property tried on fewer cases for the length of a test.
func fewer(t *testing.T, times int) {
	const checks = "rapid.checks"
	all := flag.Lookup(checks).Value.String()
	t.Cleanup(func() { _ = flag.Set(checks, all) })
	n, err := strconv.Atoi(all)
	if err == nil {
		err = flag.Set(checks, strconv.Itoa(max(1, n/times)))
	}
	controllertest.Must(t, err)
}

// Whatever the order in which several pods of a ReplicaSet are handed back, each of them stays, and each replacement goes.
func TestSeveralAreHandedBack(t *testing.T) {
	fewer(t, 25) // each takes that much longer than one of a property that needs no client
	rapid.Check(t, func(t *rapid.T) {
		h := newHandedBack(t)
		r := &Reconciler{
			Client: h.client, API: h.client, Events: events.NewFakeRecorder(100), Clock: clocktesting.NewFakeClock(noon.Add(time.Minute)),
			meters: newMeters(),
		}
		ended := make(map[string]bool)
		look := func(name string) {
			if ended[name] {
				return
			}
			m := &placementv1alpha1.Move{ObjectMeta: controllertest.Named(name)}
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			controllertest.Must(t, err)
			h.get(m)
			ended[name] = m.Status.Phase.Ended()
		}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			if what := rapid.IntRange(0, originals).Draw(t, "what"); what < originals {
				look(h.moves[what])
			} else {
				h.replicate()
			}
		}
		for range 40 {
			for _, m := range h.moves {
				look(m)
			}
			h.replicate()
		}
		for i, name := range h.moves {
			m, p := &placementv1alpha1.Move{ObjectMeta: controllertest.Named(name)}, &corev1.Pod{ObjectMeta: controllertest.Named(fmt.Sprintf("original-%d", i))}
			h.get(m)
			if m.Status.Phase != placementv1alpha1.MoveUndone {
				t.Errorf("Move %s is %s: %s", name, m.Status.Phase, m.Status.Message)
			}
			if h.get(p); !metav1.IsControlledBy(p, h.set) {
				t.Errorf("original %d is of %v", i, p.OwnerReferences)
			}
		}
	})
}
