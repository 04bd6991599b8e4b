// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	create := func(l *loop, pod *corev1.Pod) {
		_, err := l.client.CoreV1().Pods(pod.Namespace).Create(l.ctx, pod, metav1.CreateOptions{})
		l.must(err)
	}
	update := func(l *loop, pod *corev1.Pod) {
		_, err := l.client.CoreV1().Pods(pod.Namespace).Update(l.ctx, pod, metav1.UpdateOptions{})
		l.must(err)
	}
	remove := func(l *loop, namespace string) {
		l.must(l.client.CoreV1().Pods(namespace).Delete(l.ctx, "there", metav1.DeleteOptions{}))
	}
	label := func(l *loop, namespace string, labels map[string]string) {
		_, err := l.client.CoreV1().Namespaces().Update(l.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}, metav1.UpdateOptions{})
		l.must(err)
	}
	for name, tc := range map[string]struct {
		there   []*st.PodWrapper
		waits   *st.PodWrapper
		nothing func(*loop) // helps it not
		helps   func(*loop)
	}{
		"a pod comes": {
			waits:   having(webPod("waits"), affinity),
			nothing: func(l *loop) { create(l, in("b", "db").Obj()) },
			helps:   func(l *loop) { create(l, in("a", "db").Obj()) },
		},
		"a pod is labelled": {
			there:   []*st.PodWrapper{in("a", "web"), in("b", "web")},
			waits:   having(webPod("waits"), affinity),
			nothing: func(l *loop) { update(l, in("b", "db").Obj()) },
			helps:   func(l *loop) { update(l, in("a", "db").Obj()) },
		},
		"a pod goes": {
			there:   []*st.PodWrapper{in("a", "db"), in("b", "db")},
			waits:   having(webPod("waits"), antiAffinity),
			nothing: func(l *loop) { remove(l, "b") },
			helps:   func(l *loop) { remove(l, "a") },
		},
		"a pod is labelled otherwise": {
			there:   []*st.PodWrapper{in("a", "db"), in("b", "db")},
			waits:   having(webPod("waits"), antiAffinity),
			nothing: func(l *loop) { update(l, in("b", "web").Obj()) },
			helps:   func(l *loop) { update(l, in("a", "web").Obj()) },
		},
		"a pod goes that kept it off": {
			there:   []*st.PodWrapper{having(in("b", "web"), antiAffinity), in("a", "web")},
			waits:   webPod("waits").Namespace("a").Label("app", "db"),
			nothing: func(l *loop) { remove(l, "a") },
			helps:   func(l *loop) { remove(l, "b") },
		},
		"a namespace is labelled": {
			there:   []*st.PodWrapper{in("b", "db")},
			waits:   having(webPod("waits"), affinity),
			nothing: func(l *loop) { label(l, "a", map[string]string{"team": "a"}) },
			helps:   func(l *loop) { label(l, "b", map[string]string{"team": "a"}) },
		},
		"its namespace is labelled": {
			there:   []*st.PodWrapper{having(in("b", "web"), antiAffinity)},
			waits:   webPod("waits").Namespace("a").Label("app", "db"),
			nothing: func(l *loop) { label(l, "b", map[string]string{"team": "b"}) },
			helps:   func(l *loop) { label(l, "a", nil) },
		},
		"a namespace becomes known after its pod": {
			there:   []*st.PodWrapper{in("new", "db")},
			waits:   having(webPod("waits"), affinity),
			nothing: func(l *loop) { label(l, "a", map[string]string{"team": "a"}) },
			helps: func(l *loop) {
				_, err := l.client.CoreV1().Namespaces().Create(l.ctx, namespace("new", "a"), metav1.CreateOptions{})
				l.must(err)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := append(heights(0), namespace("a", "a"), namespace("b", ""), namespace("ns", ""))
			for _, p := range tc.there {
				objects = append(objects, p.Obj())
			}
			l := startLoop(t, 3, objects...)
			create(l, tc.waits.Obj())
			l.failed("waits", 1)
			tc.nothing(l)
			tc.helps(l)
			l.until("the pod to be bound", func() bool {
				p, err := l.client.CoreV1().Pods(tc.waits.Obj().Namespace).Get(l.ctx, "waits", metav1.GetOptions{})
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
