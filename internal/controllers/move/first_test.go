// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// The steps of a pod that is evicted first: it is evicted or left, and nothing else is done.
func TestStepsOfAPodEvictedFirst(t *testing.T) {
	const planned, evicting, done, failed = placementv1alpha1.MovePlanned, placementv1alpha1.MoveEvicting, placementv1alpha1.MoveDone, placementv1alpha1.MoveFailed
	for name, tc := range map[string]struct {
		f    facts
		want placementv1alpha1.MovePhase
		acts action
	}{
		"nothing is against it":                {facts{holder: replicaSet}, evicting, evict},
		"its budget does not allow it":         {facts{phase: evicting, holder: replicaSet}, evicting, evict},
		"its budget has not allowed it":        {facts{phase: evicting, holder: replicaSet, overdue: true}, failed, wait},
		"another one is not ready":             {facts{holder: replicaSet, refusal: "no"}, planned, wait},
		"another one is not ready any more":    {facts{phase: evicting, holder: replicaSet, refusal: "no"}, planned, wait},
		"another one is not ready for long":    {facts{phase: planned, holder: replicaSet, refusal: "no", late: true}, failed, wait},
		"it is ending":                         {facts{phase: evicting, holder: replicaSet, leaving: true, refusal: "no", late: true}, evicting, wait},
		"its node does not say that it is":     {facts{phase: evicting, holder: replicaSet, leaving: true, overdue: true, stuck: true}, failed, wait},
		"it has long to end":                   {facts{phase: evicting, holder: replicaSet, leaving: true, overdue: true}, evicting, wait},
		"somebody else has deleted it":         {facts{phase: planned, holder: replicaSet, leaving: true}, failed, wait},
		"it is gone":                           {facts{phase: evicting, holder: nobody}, done, wait},
		"it has another controller":            {facts{phase: evicting, holder: anotherOwner}, failed, wait},
		"the Move is deleted":                  {facts{phase: evicting, holder: replicaSet, dropped: true}, failed, wait},
		"the Move has ended, and it is there":  {facts{phase: done, holder: replicaSet}, done, wait},
		"its owner wants none, and it is here": {facts{phase: evicting, holder: replicaSet, unwanted: true}, evicting, evict},
	} {
		tc.f.first = true
		if s := next(tc.f); s.phase != tc.want || s.action != tc.acts || s.message == "" && !tc.f.phase.Ended() {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// stateful is an API server with a StatefulSet of ready pods, and a reconciler of their Moves.
type stateful struct {
	*controllertest.Rig
	*Reconciler
	set *appsv1.StatefulSet
	// allows says whether a disruption budget lets pods be evicted.
	allows bool
	made   int
}

const replicas = 3

// database wants three pods.
func database() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: controllertest.Named("db"), Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
	}}
}

func newStateful(t *testing.T) *stateful {
	t.Helper()
	s := &stateful{allows: true, set: database()}
	s.Rig = controllertest.New(t, noon, controllertest.Builder(t, s.set).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(ctx context.Context, to client.Client, sub string, of, with client.Object, options ...client.SubResourceCreateOption) error {
			if !s.allows {
				return apierrors.NewTooManyRequests("the budget does not allow it", 1)
			}
			return to.SubResource(sub).Create(ctx, of, with, options...)
		},
	}))
	s.Reconciler = &Reconciler{Client: s.Server, API: s.Server, Clock: s.Time, meters: newMeters(), Events: s.Said}
	for i := range replicas {
		s.pod(i)
	}
	return s
}

// pod makes that of a number, which is ready.
func (s *stateful) pod(i int) {
	s.Helper()
	s.made++
	p := podOf(fmt.Sprint("db-", i), "StatefulSet", "db")
	p.UID, p.Labels, p.Spec.NodeName = types.UID(fmt.Sprintf("%08d-x", s.made)), map[string]string{"app": "db"}, "n"
	p.CreationTimestamp = metav1.NewTime(s.Time.Now())
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	s.Create(p)
}

// pods are those that are there, and ready counts those that are ready.
func (s *stateful) pods() (pods []corev1.Pod, ready int) {
	s.Helper()
	var list corev1.PodList
	s.Must(s.Server.List(s.Context(), &list))
	for i := range list.Items {
		if readyFor(&list.Items[i], 0, s.Time.Now()) {
			ready++
		}
	}
	return list.Items, ready
}

// move makes a Move of a pod of a node that is drained, as a caller does.
func (s *stateful) move(p *corev1.Pod) *placementv1alpha1.Move {
	s.Helper()
	return s.moveFor(p, placementv1alpha1.MoveDrain)
}

func (s *stateful) moveFor(p *corev1.Pod, reason placementv1alpha1.MoveReason) *placementv1alpha1.Move {
	s.Helper()
	o := Owner{StatefulSet: s.set, EvictFirst: true}
	m := o.Move(p, reason, Histories(s.Moves())[string(p.UID)])
	m.UID, m.CreationTimestamp = types.UID("move-"+m.Name), metav1.NewTime(s.Time.Now())
	s.Create(m)
	return m
}

// look looks at a Move, some times.
func (s *stateful) look(m *placementv1alpha1.Move, times int) *placementv1alpha1.Move {
	s.Helper()
	for range times {
		_, err := s.Reconcile(s.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		s.Must(err)
	}
	is := &placementv1alpha1.Move{}
	s.Must(client.IgnoreNotFound(s.Server.Get(s.Context(), client.ObjectKeyFromObject(m), is)))
	return is
}

// unready has a pod be not ready.
func (s *stateful) unready(p *corev1.Pod) {
	p.Status.Conditions[0].Status = corev1.ConditionFalse
	s.Must(s.Server.Status().Update(s.Context(), p))
}

// oneByOne is a StatefulSet with its pods, their node and their Moves, without an API server.
type oneByOne struct {
	set    *appsv1.StatefulSet
	node   corev1.Node
	pods   []corev1.Pod
	moves  []placementv1alpha1.Move
	allows bool
	made   int
}

func (w *oneByOne) create(i int) {
	w.made++
	p := podOf(fmt.Sprint("db-", i), "StatefulSet", "db")
	p.UID, p.Spec.NodeName = types.UID(fmt.Sprint(w.made)), "n"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	w.pods = append(w.pods, *p)
}

// ready counts the pods that are ready, and are not being deleted.
func (w *oneByOne) ready() (n int) {
	for i := range w.pods {
		if w.pods[i].DeletionTimestamp == nil && readyFor(&w.pods[i], 0, noon) {
			n++
		}
	}
	return n
}

// look does what the reconciler does in one look at a Move: it writes the step, or evicts the pod, and is true then.
func (w *oneByOne) look(m *placementv1alpha1.Move) bool {
	o := &objects{move: m, statefulSet: w.set, node: &w.node, beside: beside(m, w.moves)}
	at := -1
	for i := range w.pods {
		if string(w.pods[i].UID) == m.Spec.Pod.UID {
			at, o.pod = i, &w.pods[i]
		}
		if w.pods[i].DeletionTimestamp == nil {
			o.pods = append(o.pods, w.pods[i])
		}
	}
	switch s := next(o.facts(noon)); {
	case s.phase != m.Status.Phase:
		m.Status.Phase = s.phase
	case s.action == evict && w.allows:
		w.pods[at].DeletionTimestamp = new(metav1.NewTime(noon))
		return true
	}
	return false
}

// Whatever is done in which order: Moves never take a ready pod away while another one is away, nor one that failed and is ready again, and none from a
// node that does not answer or is not drained any more.
func TestNeverMoreThanOneAwayByUs(t *testing.T) {
	evicted := 0
	rapid.Check(t, func(t *rapid.T) {
		w := &oneByOne{set: database()}
		for i := range replicas {
			w.create(i)
			w.pods[i].Status.Conditions[0].Status = corev1.ConditionTrue
		}
		w.node.Spec.Unschedulable = true
		one := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			before := w.ready()
			switch what := rapid.IntRange(0, 11).Draw(t, "what"); {
			case what == 0 && len(w.pods) > 0:
				reason := []placementv1alpha1.MoveReason{placementv1alpha1.MoveDrain, placementv1alpha1.MoveRestart}[one(2)]
				m := (&Owner{StatefulSet: w.set, EvictFirst: true}).Move(&w.pods[one(len(w.pods))], reason, History{})
				m.UID, m.CreationTimestamp = types.UID(fmt.Sprint(len(w.moves))), metav1.NewTime(noon)
				w.moves = append(w.moves, *m)
			case what == 1 && len(w.pods) < replicas:
				w.create(9)
			case what == 2:
				w.allows = !w.allows
			case what == 3:
				w.pods = slices.DeleteFunc(w.pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
			case what <= 5 && len(w.pods) > 0:
				w.pods[one(len(w.pods))].Status.Conditions[0].Status = map[int]corev1.ConditionStatus{4: corev1.ConditionTrue, 5: corev1.ConditionFalse}[what]
			case what == 6:
				w.node.Spec.Unschedulable = !w.node.Spec.Unschedulable
			case what == 7 && len(w.node.Spec.Taints) > 0:
				w.node.Spec.Taints = nil
			case what == 7:
				w.node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
			case what > 7 && len(w.moves) > 0:
				m := &w.moves[one(len(w.moves))]
				if !w.look(m) {
					continue
				}
				evicted++
				ready, drains := w.ready() < before, m.Spec.Reason == placementv1alpha1.MoveDrain
				if ready && (before < replicas || !drains) || drains && !w.node.Spec.Unschedulable || len(w.node.Spec.Taints) > 0 {
					t.Fatalf("%s was evicted for the reason %s while %d of %d pods were ready, from %+v", m.Name, m.Spec.Reason, before, replicas, w.node.Spec)
				}
			}
		}
	})
	if evicted == 0 {
		t.Error("none was evicted")
	}
}

// A pod of a StatefulSet goes when its budget allows it, and its successor of the same name has a Move of its own. Nothing is put on pods.
func TestPodOfAStatefulSetIsEvictedFirst(t *testing.T) {
	s := newStateful(t)
	pods, _ := s.pods()
	s.allows = false
	m := s.move(&pods[0])
	if is := s.look(m, 5); is.Status.Phase != placementv1alpha1.MoveEvicting || len(is.Finalizers) != 0 || metav1.GetControllerOf(is).Kind != "StatefulSet" {
		t.Fatalf("it is %s: %s, of %v", is.Status.Phase, is.Status.Message, is.OwnerReferences)
	}
	if other := s.look(s.move(&pods[1]), 3); other.Status.Phase != placementv1alpha1.MovePlanned || other.Status.Message != "another pod of its workload is being moved" {
		t.Errorf("the other one is %s: %s", other.Status.Phase, other.Status.Message)
	}
	is := pods[0].DeepCopy()
	if s.Get(is); is.ResourceVersion != pods[0].ResourceVersion {
		t.Error("the pod was changed")
	}
	s.allows = true
	if is := s.look(m, 3); is.Status.Phase != placementv1alpha1.MoveDone {
		t.Errorf("it is %s: %s", is.Status.Phase, is.Status.Message)
	}
	s.pod(0)
	pods, _ = s.pods()
	again := s.move(&pods[0])
	if again.Name == m.Name || s.look(again, 3).Status.Phase == "" {
		t.Errorf("the Move of the successor is %s, and that of the first one is %s", again.Name, m.Name)
	}
}

// A Move that is deleted leaves its pod, and one whose budget never allows it says so at its deadline.
func TestEvictedFirstIsGivenUp(t *testing.T) {
	s := newStateful(t)
	s.allows = false
	pods, _ := s.pods()
	m := s.move(&pods[0])
	s.look(m, 3)
	s.Time.Step(time.Duration(m.Spec.DeadlineSeconds+1) * time.Second)
	if is := s.look(m, 1); is.Status.Phase != placementv1alpha1.MoveFailed || is.Status.Message != "the pod was not evicted in time: its disruption budget did not allow it" {
		t.Errorf("it is %s: %s", is.Status.Phase, is.Status.Message)
	}
	m = s.move(&pods[0])
	if m.Name != "db-0-00000001-1" {
		t.Errorf("the second one is %s", m.Name)
	}
	s.look(m, 2)
	s.Delete(m)
	s.allows = true
	if is := s.look(m, 3); is.Name != "" {
		t.Errorf("it is there: %+v", is)
	}
	if _, ready := s.pods(); ready != replicas {
		t.Errorf("%d pods are ready", ready)
	}
}

// A pod that asks to be left on its node while its budget keeps it stays, unless the node has reached its end.
func TestAPodMayAskToStay(t *testing.T) {
	for ended, want := range map[bool]placementv1alpha1.MovePhase{false: placementv1alpha1.MoveFailed, true: placementv1alpha1.MoveEvicting} {
		w := &oneByOne{set: database()}
		for i := range replicas {
			w.create(i)
			w.pods[i].Status.Conditions[0].Status = corev1.ConditionTrue
		}
		w.node.Spec.Unschedulable = true
		if ended {
			w.node.Annotations = map[string]string{clusterview.CordonedForEndAnnotation: noon.Format(time.RFC3339)}
		}
		m := (&Owner{StatefulSet: w.set, EvictFirst: true}).Move(&w.pods[0], placementv1alpha1.MoveDrain, History{})
		m.CreationTimestamp = metav1.NewTime(noon)
		if w.look(m); m.Status.Phase != placementv1alpha1.MoveEvicting {
			t.Fatalf("it is %s before it asks", m.Status.Phase)
		}
		w.pods[0].Annotations = map[string]string{clusterview.SafeToEvictAnnotation: "false"}
		if w.look(m); m.Status.Phase != want {
			t.Errorf("it is %s when it asks, want %s; the node has reached its end: %t", m.Status.Phase, want, ended)
		}
	}
}

// Why a pod is not evicted first.
func TestRefusalsOfEvictingFirst(t *testing.T) {
	for want, change := range map[string]func(*stateful, []corev1.Pod){
		"":                              func(*stateful, []corev1.Pod) {},
		"its workload is being updated": func(s *stateful, _ []corev1.Pod) { s.set.Status.UpdateRevision = "2" },
		"another pod of its workload, db-1, is not ready":          func(s *stateful, pods []corev1.Pod) { s.unready(&pods[1]) },
		"its workload has 2 pods and wants 3":                      func(s *stateful, pods []corev1.Pod) { s.Delete(&pods[1]) },
		"there is no ReplicaSet or StatefulSet that the pod is of": func(s *stateful, _ []corev1.Pod) { s.Delete(s.set) },
	} {
		for _, itself := range []bool{true, false} {
			s := newStateful(t)
			pods, _ := s.pods()
			if !itself {
				s.unready(&pods[0])
			}
			change(s, pods)
			if s.set.Status.UpdateRevision != "" {
				s.Must(s.Server.Status().Update(t.Context(), s.set))
			}
			o, err := read(t.Context(), s.Server, s.move(&pods[0]))
			s.Must(err)
			expect := want
			if !itself && (len(o.pods) < replicas && o.statefulSet != nil || want == "another pod of its workload, db-1, is not ready") {
				expect = "" // it takes nothing away
			}
			if got := o.facts(noon).refusal; got != expect {
				t.Errorf("with a pod that is ready (%t): %q, want %q", itself, got, expect)
			}
		}
	}
}

// A pod is ready whatever the clock of its kubelet says, and for how long it has been is told by it.
func TestReadyByAnotherClock(t *testing.T) {
	p := podOf("p", "StatefulSet", "db")
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(time.Minute))}}
	if !readyFor(p, 0, noon) || readyFor(p, time.Second, noon) {
		t.Error("it is not ready, or has been for a second")
	}
}

// A StatefulSet whose controller deletes no pods for another revision is not being updated.
func TestRolledOut(t *testing.T) {
	for name, tc := range map[string]struct {
		kind                      appsv1.StatefulSetUpdateStrategyType
		partition, start, updated int32
		want                      bool
	}{
		"rolled":                   {appsv1.RollingUpdateStatefulSetStrategyType, 0, 0, 3, true},
		"on deletion":              {appsv1.OnDeleteStatefulSetStrategyType, 0, 0, 0, false},
		"up to its partition":      {appsv1.RollingUpdateStatefulSetStrategyType, 2, 0, 1, false},
		"not yet to its partition": {appsv1.RollingUpdateStatefulSetStrategyType, 1, 0, 1, true},

		"up to its partition, from another ordinal on":      {appsv1.RollingUpdateStatefulSetStrategyType, 2, 100, 1, false},
		"not yet to its partition, from another ordinal on": {appsv1.RollingUpdateStatefulSetStrategyType, 1, 100, 1, true},
	} {
		s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), Ordinals: &appsv1.StatefulSetOrdinals{Start: tc.start}, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
			Type: tc.kind, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &tc.partition},
		}}, Status: appsv1.StatefulSetStatus{CurrentRevision: "1", UpdateRevision: "2", UpdatedReplicas: tc.updated}}
		if got := isRolledOut(s); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
