// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// affineToTeam are pods that are a db, in namespaces of a team.
var affineToTeam = []corev1.PodAffinityTerm{{
	LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
	NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
	TopologyKey:       corev1.LabelHostname,
}}

// A pod that waits because of an affinity that selects namespaces is tried again when something helps it, and not when something else happens.
func TestNamespacesAreSeen(t *testing.T) {
	affinity := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: affineToTeam}}
	antiAffinity := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: affineToTeam}}
	in := func(namespace, app string) *st.PodWrapper {
		return st.MakePod().Namespace(namespace).Name("there").UID(namespace+"/there").Node("n1").Label("app", app)
	}
	having := func(p *st.PodWrapper, a *corev1.Affinity) *st.PodWrapper {
		p.Spec.Affinity = a
		return p
	}
	create := func(p *st.PodWrapper) func(*loop) {
		return func(l *loop) {
			_, err := l.client.CoreV1().Pods(p.Obj().Namespace).Create(l.ctx, p.Obj(), metav1.CreateOptions{})
			must(l, err)
		}
	}
	update := func(p *st.PodWrapper) func(*loop) {
		return func(l *loop) {
			_, err := l.client.CoreV1().Pods(p.Obj().Namespace).Update(l.ctx, p.Obj(), metav1.UpdateOptions{})
			must(l, err)
		}
	}
	remove := func(namespace string) func(*loop) {
		return func(l *loop) {
			must(l, l.client.CoreV1().Pods(namespace).Delete(l.ctx, "there", metav1.DeleteOptions{}))
		}
	}
	label := func(name, team string) func(*loop) {
		return func(l *loop) {
			_, err := l.client.CoreV1().Namespaces().Update(l.ctx, namespace(name, team), metav1.UpdateOptions{})
			must(l, err)
		}
	}
	comes := func(l *loop) {
		_, err := l.client.CoreV1().Namespaces().Create(l.ctx, namespace("new", "a"), metav1.CreateOptions{})
		must(l, err)
	}
	there := func(pods ...*st.PodWrapper) []*st.PodWrapper { return pods }
	near, far := having(webPod("waits"), affinity).Obj(), having(webPod("waits"), antiAffinity).Obj()
	kept := webPod("waits").Namespace("a").Label("app", "db").Obj()
	for name, tc := range map[string]struct {
		there   []*st.PodWrapper
		waits   *corev1.Pod
		nothing func(*loop) // helps it not
		helps   func(*loop)
	}{
		"a pod comes":                             {nil, near, create(in("b", "db")), create(in("a", "db"))},
		"a pod is labelled":                       {there(in("a", "web"), in("b", "web")), near, update(in("b", "db")), update(in("a", "db"))},
		"a pod goes":                              {there(in("a", "db"), in("b", "db")), far, remove("b"), remove("a")},
		"a pod is labelled otherwise":             {there(in("a", "db"), in("b", "db")), far, update(in("b", "web")), update(in("a", "web"))},
		"a pod goes that kept it off":             {there(having(in("b", "web"), antiAffinity), in("a", "web")), kept, remove("a"), remove("b")},
		"a namespace is labelled":                 {there(in("b", "db")), near, label("a", "a"), label("b", "a")},
		"its namespace is labelled":               {there(having(in("b", "web"), antiAffinity)), kept, label("b", "b"), label("a", "")},
		"a namespace becomes known after its pod": {there(in("new", "db")), near, label("a", "a"), comes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := append(heights(0), namespace("a", "a"), namespace("b", ""), namespace("ns", ""))
			for _, p := range tc.there {
				objects = append(objects, p.Obj())
			}
			l := startLoop(t, 3, objects...)
			_, err := l.client.CoreV1().Pods(tc.waits.Namespace).Create(l.ctx, tc.waits.DeepCopy(), metav1.CreateOptions{})
			must(l, err)
			l.failed("waits", 1)
			tc.nothing(l)
			tc.helps(l)
			l.until("the pod to be bound", func() bool {
				p, err := l.client.CoreV1().Pods(tc.waits.Namespace).Get(l.ctx, "waits", metav1.GetOptions{})
				return err == nil && p.Spec.NodeName != ""
			})
			l.failed("waits", 1)
		})
	}
}

// A pod that is being tried is told of what happens in the namespaces that it selects, as one that waits is. One that has a node is not looked at.
func TestNamespacesAreSeenWhileAPodIsTried(t *testing.T) {
	logger, ctx := ktesting.NewTestContext(t)
	known := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	must(t, known.Core().V1().Namespaces().Informer().GetIndexer().Add(namespace("a", "a")))
	answers := func(hint fwk.QueueingHint) []*internalqueue.QueueingHintFunction {
		return []*internalqueue.QueueingHintFunction{{PluginName: names.InterPodAffinity, QueueingHintFn: func(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) { return hint, nil }}}
	}
	queue := newQueue(ctx, t, known, internalqueue.WithQueueingHintMapPerProfile(internalqueue.QueueingHintMapPerProfile{
		"": {bound: answers(fwk.QueueSkip), affinityAgain: answers(fwk.Queue)},
	}))
	seeing, err := seeNamespaces(ctx, queue, known.Core().V1().Namespaces())
	must(t, err)
	pod := st.MakePod().Name("waits").Namespace("ns").UID("waits").Obj()
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: affineToTeam}}
	seeing.Add(ctx, pod)
	entity, err := queue.Pop(logger)
	must(t, err)
	seeing.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodAdd, nil, st.MakePod().Namespace("a").Name("db").Label("app", "db").Node("n").Obj(), nil)
	info := entity.(*framework.QueuedPodInfo)
	info.UnschedulablePlugins.Insert(names.InterPodAffinity)
	must(t, queue.AddUnschedulablePodIfNotPresent(logger, info, queue.SchedulingCycle()))
	if waits := queue.UnschedulablePods(); len(waits) != 0 {
		t.Error("the pod waits, and what helped it came while it was being tried")
	}
	seeing.Delete(logger, pod)
	if q := seeing.(*seeingQueue); len(q.selecting) != 0 {
		t.Errorf("of a pod that is gone %v is left", q.selecting)
	}
}

// namespace is one of a team, if it has one.
func namespace(name, team string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if team != "" {
		n.Labels = map[string]string{"team": team}
	}
	return n
}

// other is a pod on a node that is of no workload.
func other(name, node string) *st.PodWrapper {
	return st.MakePod().Namespace("ns").Name(name).UID(name).Node(node)
}

// amongAll has a pod be one more than on another node at most, of all pods of its namespace.
func amongAll(p *st.PodWrapper) *st.PodWrapper {
	return p.SpreadConstraint(1, corev1.LabelHostname, corev1.DoNotSchedule, &metav1.LabelSelector{}, nil, nil, nil, nil)
}

// cordoned are two nodes with so many pods of no workload, of which the second takes none.
func cordoned(first, second []string) []runtime.Object {
	objects := heights(0, 0)
	objects[1].(*corev1.Node).Spec.Unschedulable = true
	for node, names := range map[string][]string{"n1": first, "n2": second} {
		for _, name := range names {
			objects = append(objects, other(name, node).Obj())
		}
	}
	return objects
}

// An empty selector selects all pods of the namespace, for a constraint that refuses nodes.
func TestEmptySelectorCountsAllPods(t *testing.T) {
	l := startLoop(t, 3, append(cordoned([]string{"a"}, nil), st.MakePod().Namespace("another").Name("b").UID("b").Node("n2").Obj())...)
	l.create(amongAll(webPod("p")))
	l.failed("p", 1)
	for _, e := range l.events() {
		if !strings.Contains(e, "1 node(s) didn't match pod topology spread constraints") {
			t.Errorf("it is said that %q", e)
		}
	}
	// Where the other node has one too, there is room beside the first.
	_, err := l.client.CoreV1().Pods("ns").Create(l.ctx, other("c", "n2").Obj(), metav1.CreateOptions{})
	must(l, err)
	if node := l.bound("p"); node != "n1" {
		t.Errorf("it is on %s", node)
	}
}

// As many pods make way as the constraint needs. With one left on each node there is room for one more.
func TestEmptySelectorInPreemption(t *testing.T) {
	l := newLoop(t, strings.Replace(loopConfiguration, ", {name: DefaultPreemption}", "", 1), func(*Options) {}, cordoned([]string{"a", "b"}, []string{"c"})...)
	l.start()
	l.create(amongAll(webPod("p").Priority(1)))
	if node := l.bound("p"); node != "n1" {
		t.Errorf("it is on %s", node)
	}
	pods, err := l.client.CoreV1().Pods("ns").List(l.ctx, metav1.ListOptions{})
	must(l, err)
	on := make(map[string]int)
	for i := range pods.Items {
		on[pods.Items[i].Spec.NodeName]++
	}
	if on["n1"] != 2 || on["n2"] != 1 {
		t.Errorf("there are so many pods on the nodes: %v, want the pod with one other, and one", on)
	}
}
