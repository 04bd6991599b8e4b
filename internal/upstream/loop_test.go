// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/plugins"
)

// loopConfiguration is a profile that spreads, and binds.
const loopConfiguration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
profiles:
- schedulerName: espalier-scheduler
  plugins:
    multiPoint:
      enabled: [{name: SpreadTree, weight: 10000}, {name: PreBinder}]
      disabled: [{name: DynamicResources}, {name: DefaultPreemption}]
    preScore: {disabled: [{name: PodTopologySpread}]}
    score: {disabled: [{name: PodTopologySpread}]}
    bind: {enabled: [{name: RecordingBinder}], disabled: [{name: DefaultBinder}]}
  pluginConfig:
  - {name: PodTopologySpread, args: {defaultingType: List}}
`

// loop is a scheduler that runs, and an API server that refuses bindings.
type loop struct {
	*testing.T
	ctx       context.Context
	end       func()
	client    *fake.Clientset
	informers informers.SharedInformerFactory
	sched     *scheduler.Scheduler
	owner     owner // of pods, where they are shared
	waiter    *waiter
	watched   chan struct{} // is closed when pods are

	mu sync.Mutex // guards what follows
	// say is what becomes of a binding.
	say func(pod, node string) error
	// bindings are the nodes that pods were bound to, in order, refused ones too.
	bindings map[string][]string
	heard    []string
}

func startLoop(t *testing.T, candidates int, objects ...runtime.Object) *loop {
	t.Helper()
	l := newLoop(t, loopConfiguration, func(o *Options) { o.Candidates["espalier-scheduler"] = candidates }, objects...)
	l.start()
	return l
}

// newLoop makes one that does not run yet, and has three candidates unless the options are changed.
func newLoop(t *testing.T, as string, change func(*Options), objects ...runtime.Object) *loop {
	t.Helper()
	refusedBindings.Reset()
	l := &loop{T: t, client: fake.NewClientset(objects...), bindings: make(map[string][]string), watched: make(chan struct{}), say: full()}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	t.Cleanup(cancel)
	l.ctx, l.end = ctx, cancel
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(as), nil, nil)
	must(l, err)
	configuration := obj.(*schedulerapi.KubeSchedulerConfiguration)
	registry := frameworkruntime.Registry{
		"PreBinder": func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return preBinder{}, nil },
		"Waiter": func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			l.waiter = &waiter{loop: l, handle: h, discarded: make(chan struct{}), back: make(chan struct{})}
			return l.waiter, nil
		},
		"Owner": func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return &l.owner, nil },
	}
	maps.Copy(registry, plugins.Registry())
	watched := sync.OnceFunc(func() { close(l.watched) })
	l.client.PrependWatchReactor("pods", func(a clienttesting.Action) (bool, watch.Interface, error) {
		defer watched()
		w, err := l.client.Tracker().Watch(a.GetResource(), a.GetNamespace(), a.(clienttesting.WatchActionImpl).ListOptions)
		return true, w, err
	})
	l.informers = scheduler.NewInformerFactory(l.client, 0, nil)
	l.sched, err = scheduler.New(ctx, bindingClient{l.client, l}, l.informers, nil, func(string) events.EventRecorderLogger { return &recorder{l} },
		scheduler.WithProfiles(configuration.Profiles...), scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPercentageOfNodesToScore(configuration.PercentageOfNodesToScore), scheduler.WithComponentConfigVersion(configuration.APIVersion))
	must(l, err)
	o := Options{
		Profiles: configuration.Profiles, NodeLocal: plugins.NodeLocal(), Client: l.client, Candidates: map[string]int{"espalier-scheduler": 3},
	}
	change(&o)
	if o.Share != nil {
		o.Share.Owner, o.Share.Pods = &l.owner, l.informers.Core().V1().Pods().Lister()
	}
	without, err := Adapt(ctx, l.sched, o)
	must(l, err)
	if len(without) > 0 {
		t.Fatal(without)
	}
	return l
}

// start has it run.
func (l *loop) start() {
	l.Helper()
	l.informers.StartWithContext(l.ctx)
	l.informers.WaitForCacheSyncWithContext(l.ctx)
	<-l.watched // a pod that is made before is handed to the informer as the client keeps it, and the informer changes it
	must(l, l.sched.WaitForHandlersSync(l.ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.sched.Run(l.ctx)
	}()
	l.Cleanup(func() {
		l.end()
		<-ended
		l.informers.Shutdown()
	})
}

// bindingClient is the scheduler's client, by which bindings go to the loop. A fake client answers one request at a time, and what becomes of a
// binding may be that other requests are made first.
type bindingClient struct {
	kubernetes.Interface
	loop *loop
}

func (c bindingClient) CoreV1() corev1client.CoreV1Interface {
	return bindingCore{c.Interface.CoreV1(), c.loop}
}

type bindingCore struct {
	corev1client.CoreV1Interface
	loop *loop
}

func (c bindingCore) Pods(namespace string) corev1client.PodInterface {
	return bindingPods{c.CoreV1Interface.Pods(namespace), c.loop}
}

type bindingPods struct {
	corev1client.PodInterface
	loop *loop
}

func (c bindingPods) Bind(_ context.Context, b *corev1.Binding, _ metav1.CreateOptions) error {
	return c.loop.bind(b)
}

// bind plays the API server: it asks what becomes of the binding before it is made, as with a webhook.
func (l *loop) bind(binding *corev1.Binding) error {
	l.mu.Lock()
	l.bindings[binding.Name] = append(l.bindings[binding.Name], binding.Target.Name)
	say := l.say
	l.mu.Unlock()
	said := say(binding.Name, binding.Target.Name)
	if said != nil && !errors.Is(said, errAnswer) {
		return said
	}
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	object, err := l.client.Tracker().Get(resource, binding.Namespace, binding.Name)
	if err != nil {
		return err
	}
	pod := object.(*corev1.Pod).DeepCopy()
	if pod.Spec.NodeName != "" {
		l.Errorf("pod %s is bound to %s, and was to %s", pod.Name, binding.Target.Name, pod.Spec.NodeName)
	}
	pod.Spec.NodeName = binding.Target.Name
	return errors.Join(l.client.Tracker().Update(resource, pod, pod.Namespace), said)
}

// errAnswer is what a client is told of a binding that was made, and whose answer is lost.
var errAnswer = errors.New("the connection was lost")

// refuse has bindings refused from now on that come to an error.
func (l *loop) refuse(say func(pod, node string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.say = say
}

func (l *loop) create(p *st.PodWrapper) {
	l.Helper()
	_, err := l.client.CoreV1().Pods("ns").Create(l.ctx, p.Obj(), metav1.CreateOptions{})
	must(l, err)
}

func (l *loop) delete(name string) {
	l.Helper()
	must(l, l.client.CoreV1().Pods("ns").Delete(l.ctx, name, metav1.DeleteOptions{}))
	l.until(name+" to be known to be gone", func() bool {
		_, err := l.sched.Profiles["espalier-scheduler"].SharedInformerFactory().Core().V1().Pods().Lister().Pods("ns").Get(name)
		return err != nil
	})
}

func (l *loop) until(what string, check func() bool) {
	l.Helper()
	for deadline := time.Now().Add(20 * time.Second); !check(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.Fatalf("waited in vain for %s; bindings %v, events %q", what, l.bindings, l.events())
		}
	}
}

// bound waits until a pod has a node.
func (l *loop) bound(name string) (node string) {
	l.Helper()
	l.until(name+" to be bound", func() bool {
		p, err := l.client.CoreV1().Pods("ns").Get(l.ctx, name, metav1.GetOptions{})
		if err == nil {
			node = p.Spec.NodeName
		}
		return node != ""
	})
	return node
}

// tried waits until a pod has been bound to so many nodes, and returns all.
func (l *loop) tried(name string, n int) (nodes []string) {
	l.Helper()
	l.until(fmt.Sprintf("%d bindings of %s", n, name), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		nodes = append([]string(nil), l.bindings[name]...)
		return len(nodes) >= n
	})
	return nodes
}

// failed waits until it was said so often that a pod could not be scheduled, or looks whether it ever was.
func (l *loop) failed(name string, n int) {
	l.Helper()
	count := func() (n int) {
		for _, e := range l.events() {
			if strings.HasPrefix(e, "FailedScheduling "+name+": ") {
				n++
			}
		}
		return n
	}
	if n > 0 {
		l.until(fmt.Sprintf("%d failures of %s", n, name), func() bool { return count() >= n })
	}
	if got := count(); got != n {
		l.Errorf("it is said %d times that %s could not be scheduled, want %d: %q", got, name, n, l.events())
	}
}

// said waits until something was said of a pod.
func (l *loop) said(name, reason, note string) {
	l.Helper()
	l.until(reason+" of "+name, func() bool {
		for _, e := range l.events() {
			if rest, is := strings.CutPrefix(e, reason+" "+name+": "); is {
				if rest != note {
					l.Fatalf("it is said that %q, want %q", rest, note)
				}
				return true
			}
		}
		return false
	})
}

// counts waits until the scheduler's cache has as many pods on each node: those that were there, and one more on some.
func (l *loop) counts(want map[string]int, more ...string) {
	l.Helper()
	for _, node := range more {
		want[node]++
	}
	l.until(fmt.Sprintf("pods by node %v", want), func() bool {
		dump := l.sched.Cache.Dump()
		for node, n := range want {
			if info, is := dump.Nodes[node]; !is || len(info.GetPods()) != n {
				return false
			}
		}
		return true
	})
}

func (l *loop) events() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.heard...)
}

// recorder notes events.
type recorder struct{ l *loop }

func (r *recorder) WithLogger(klog.Logger) events.EventRecorderLogger { return r }

func (r *recorder) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	pod, is := regarding.(*corev1.Pod)
	if !is {
		return
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.l.heard = append(r.l.heard, reason+" "+pod.Name+": "+fmt.Sprintf(note, args...))
}
