// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// Of a pod that is back and its replacement the one stays that the strategy says, where three pods are on zones of one node each.
func TestReplacementStays(t *testing.T) {
	set := &appsv1.ReplicaSet{ObjectMeta: controllertest.Named("web-1")}
	pod := func(name, node string, minutes int) *corev1.Pod {
		p := podOf(name, "ReplicaSet", "web-1")
		p.CreationTimestamp, p.Annotations = metav1.NewTime(noon.Add(time.Duration(minutes)*time.Minute)), map[string]string{clusterview.PlacedByAnnotation: "profile; spread=zone"}
		p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: p.CreationTimestamp}}}}
		return p
	}
	moved := func(phase placementv1alpha1.MovePhase, minutes int) *placementv1alpha1.Move {
		m := moveOf("other")
		m.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
		m.Spec.Reason, m.Status.Phase = placementv1alpha1.MoveDisconnect, phase
		return m
	}
	for name, tc := range map[string]struct {
		keep                  placementv1alpha1.Keep
		original, replacement string // their nodes
		change                func(original, replacement *corev1.Pod)
		other                 *placementv1alpha1.Move // of another pod of the ReplicaSet
		cordoned              string                  // the nodes that are
		want                  bool
	}{
		"the original":                          {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c"},
		"the replacement":                       {keep: placementv1alpha1.KeepReplacement, original: "c", replacement: "b", want: true},
		"the better place is the original's":    {keep: placementv1alpha1.KeepBestPlaced, original: "c", replacement: "b"},
		"the better place is the replacement's": {keep: placementv1alpha1.KeepBestPlaced, original: "b", replacement: "c", want: true},
		"one place is as good":                  {keep: placementv1alpha1.KeepBestPlaced, original: "c", replacement: "c"},
		"a better place, and it is not ready":   {keep: placementv1alpha1.KeepBestPlaced, original: "b", replacement: "c", change: func(_, r *corev1.Pod) { r.Status.Conditions[0].Status = corev1.ConditionFalse }},
		"the one that has run for longer":       {keep: placementv1alpha1.KeepLongestRunning, original: "b", replacement: "c"},
		"the one that has, since it was started": {keep: placementv1alpha1.KeepLongestRunning, original: "c", replacement: "b", change: func(o, _ *corev1.Pod) {
			o.Status.ContainerStatuses[0].State.Running.StartedAt.Time = noon.Add(time.Hour)
		}, want: true},
		"the original is a replacement itself": {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c", other: moved(placementv1alpha1.MoveWaiting, 0), want: true},
		"of a pod that is back":                {keep: placementv1alpha1.KeepOriginal, original: "b", other: moved(placementv1alpha1.MoveUndone, -1), want: true},
		"of a pod that is gone":                {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c", other: moved(placementv1alpha1.MoveDone, -1)},
		"the other pod was replaced later":     {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c", other: moved(placementv1alpha1.MoveWaiting, 1)},
		"there is no replacement":              {keep: placementv1alpha1.KeepReplacement, original: "b"},
		"its node is cordoned":                 {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c", cordoned: "b", want: true},
		"its node is, and it asks to stay": {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c", cordoned: "b", change: func(o, _ *corev1.Pod) {
			o.Annotations[clusterview.SafeToEvictAnnotation] = "false"
		}},
		"its node is, and there is none yet": {keep: placementv1alpha1.KeepOriginal, original: "b", cordoned: "b", want: true},
		"no drain takes it away":             {keep: placementv1alpha1.KeepOriginal, original: "c", replacement: "b", cordoned: "c"},
		"both nodes are cordoned":            {keep: placementv1alpha1.KeepOriginal, original: "b", replacement: "c", cordoned: "bc"},
	} {
		t.Run(name, func(t *testing.T) {
			original, replacement := pod("original", tc.original, 0), pod("replacement", tc.replacement, 30)
			if tc.change != nil {
				tc.change(original, replacement)
			}
			original.OwnerReferences = controllertest.OwnedBy(Kind, "m")
			others := []*corev1.Pod{pod("p", "a", 1), pod("q", "b", 2)}
			all := []client.Object{original, others[0], others[1]}
			for _, zone := range []string{"a", "b", "c"} {
				all = append(all, &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: zone, Labels: map[string]string{"zone": zone}}, Spec: corev1.NodeSpec{Unschedulable: strings.Contains(tc.cordoned, zone)},
				})
			}
			o := &objects{move: &placementv1alpha1.Move{ObjectMeta: controllertest.Named("m"), Spec: placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDisconnect, Keep: tc.keep}}, pod: original, set: set}
			o.pods = []corev1.Pod{*others[0], *others[1]}
			if tc.replacement != "" {
				all = append(all, replacement)
				o.pods = append(o.pods, *replacement)
				o.extra = &o.pods[2]
			}
			if tc.other != nil {
				all = append(all, tc.other)
			}
			o.move.Spec.ReplicaSet.UID = "web-1"
			r := &Reconciler{Clock: clocktesting.NewFakeClock(noon), Client: controllertest.Builder(t, all...).Build()}
			r.API, r.Drains = r.Client, func(_ context.Context, _ *corev1.Pod, node *corev1.Node) (bool, error) { return node.Name == "b", nil }
			controllertest.Must(t, o.readNode(t.Context(), r.API))
			got, err := r.replacementStays(t.Context(), o)
			if err != nil || got != tc.want {
				t.Errorf("the replacement stays: %t, %v", got, err)
			}
		})
	}
}

// A pod that has no node is not moved, and nobody asks for its node.
func TestPodWithoutANode(t *testing.T) {
	for _, reason := range []placementv1alpha1.MoveReason{placementv1alpha1.MoveDrain, placementv1alpha1.MoveDisconnect} {
		o := &objects{
			pod: &corev1.Pod{}, set: &appsv1.ReplicaSet{}, deployment: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}},
			move: &placementv1alpha1.Move{Spec: placementv1alpha1.MoveSpec{Reason: reason, Avoid: &placementv1alpha1.Domain{TopologyKey: corev1.LabelHostname}}},
		}
		o.move.Status.Phase = placementv1alpha1.MoveHandingOver
		api := interceptor.NewClient(controllertest.Builder(t).Build(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errors.New("resource name may not be empty")
			},
		})
		if err := errors.Join(o.readNode(t.Context(), api), o.readAstray(t.Context(), api)); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if got := o.refusal(); got != "the pod has no node" {
			t.Errorf("%s: the refusal is %q", reason, got)
		}
	}
}

// A replacement is no better off in the domain that the pod is to leave; nor, for a drain, on a node that is about to be removed for the
// same reason. The first node is the pod's.
func TestAstray(t *testing.T) {
	node := func(name string, change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		change(n)
		return n
	}
	plain := func(*corev1.Node) {}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	candidate := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	for name, tc := range map[string]struct {
		reason   placementv1alpha1.MoveReason
		from, to func(*corev1.Node)
		on       []string // the nodes of the pods that have come since
		want     bool
	}{
		"none has come":              {placementv1alpha1.MoveDrain, cordoned, plain, nil, false},
		"it is elsewhere":            {placementv1alpha1.MoveDrain, cordoned, plain, []string{"to"}, false},
		"it is where the pod is":     {placementv1alpha1.MoveDrain, cordoned, plain, []string{"from"}, true},
		"one of two is elsewhere":    {placementv1alpha1.MoveDrain, cordoned, plain, []string{"from", "to"}, false},
		"its node is gone":           {placementv1alpha1.MoveDrain, cordoned, plain, []string{"gone"}, false},
		"both are candidates":        {placementv1alpha1.MoveDrain, candidate, candidate, []string{"to"}, true},
		"the other is a candidate":   {placementv1alpha1.MoveDrain, cordoned, candidate, []string{"to"}, false},
		"both are, for no drain":     {placementv1alpha1.MoveRestart, candidate, candidate, []string{"to"}, false},
		"the pod's is none any more": {placementv1alpha1.MoveDrain, plain, candidate, []string{"to"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			api := controllertest.Builder(t, node("from", tc.from), node("to", tc.to)).Build()
			made := metav1.NewTime(noon)
			o := &objects{pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "from"}}, move: &placementv1alpha1.Move{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: made},
				Spec:       placementv1alpha1.MoveSpec{Reason: tc.reason, Avoid: &placementv1alpha1.Domain{TopologyKey: corev1.LabelHostname, Value: new("from")}},
				Status:     placementv1alpha1.MoveStatus{Phase: placementv1alpha1.MoveReplacing},
			}}
			before := metav1.NewTime(made.Add(-time.Second))
			o.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: before}, Spec: corev1.PodSpec{NodeName: "from"}}}
			for _, on := range tc.on {
				o.pods = append(o.pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: made}, Spec: corev1.PodSpec{NodeName: on}})
			}
			controllertest.Must(t, o.readAstray(t.Context(), api))
			if o.astray != tc.want {
				t.Errorf("it is astray: %t", o.astray)
			}
		})
	}
}

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
