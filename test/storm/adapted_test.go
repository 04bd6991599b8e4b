// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// evidence is what is known of a storm at its end.
type evidence struct {
	*running
	server *apiServer
	// values are metrics.
	values map[string]float64
	// announced are the events Scheduled.
	announced []eventsv1.Event
}

// witness gathers it.
func (r *running) witness(t *testing.T, server *apiServer) *evidence {
	t.Helper()
	e := &evidence{running: r, server: server, values: counters(t, counted...)}
	list, err := server.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, event := range list.Items {
		if event.Reason == "Scheduled" {
			e.announced = append(e.announced, event)
		}
	}
	return e
}

var counted = []string{
	"espalier_hints_total", "espalier_failures_total", "espalier_refused_bindings_total", "espalier_sampled_pods_total", "espalier_handed_back_pods_total",
}

// wrappers are what each wrapper of upstream.Adapt must have done by the end of a storm, at least once, or never. What countAll and seeNamespaces do is
// in the golden file. Without the wrapper it is the other
// way round: which of them is missing can be read off what fails.
var wrappers = []struct {
	name, what string
	never      bool
	count      func(*evidence) float64
}{
	{"confirm", "pods whose binding had no answer were looked for", false, func(e *evidence) float64 { return e.server.looked(true) }},
	{"confirm", "pods whose binding had no answer were not looked for", true, func(e *evidence) float64 { return e.server.looked(false) }},
	{"withhold", "pods were not withheld", false, func(e *evidence) float64 { return float64(e.admitted.Load()) }},
	{"recoverDiscarded", "pods whose binding failed were looked for in the queue", false, func(e *evidence) float64 { return float64(e.sought.Load()) }},
	{"failAsync", "refused pods were written down while the next one was taken up", false, func(e *evidence) float64 { return float64(e.server.beside.Load()) }},
	{"yield", "others ran before a pod was taken up", false, func(e *evidence) float64 { return one(e.yielded) }},
	{"pace", "pods were taken up late because many were being bound", false, func(e *evidence) float64 { return float64(e.held.Load()) }},
	{"rebind", "pods were bound to another node at once", false, metric("espalier_refused_bindings_total{outcome=next,profile=" + shipped + "}")},
	{"announce", "pods got the event Scheduled", false, func(e *evidence) float64 { return e.events(shipped) }},
	{"announce", "pods got the event Scheduled in the profile that announces none", true, func(e *evidence) float64 { return e.events(scored) }},
	{"announce", "events Scheduled name another node than the pod's", true, func(e *evidence) float64 { return e.mistaken() }},
	{"narrow", "looks at some of the waiting pods followed on a binding", false, func(e *evidence) float64 { return float64(e.few.Load()) }},
	{"narrow", "looks at all waiting pods followed on a binding", true, func(e *evidence) float64 { return float64(e.everyone.Load()) }},
	{"track", "changed nodes were known by the journal", false, func(e *evidence) float64 { return float64(e.changed.Load()) }},
	{"wrap", "node hints were used", false, metric("espalier_hints_total{outcome=used,profile=" + shipped + "}")},
	{"wrap", "pods had no node hint because no node fitted", false, metric("espalier_hints_total{outcome=none,profile=" + shipped + "}")},
	{"sample", "pods were decided about by a sample", false, metric("espalier_sampled_pods_total{outcome=sampled,profile=" + sampling + "}")},
	{"sample", "node hints were used beside samples", false, metric("espalier_hints_total{outcome=used,profile=" + sampling + "}")},
	{"share", "pods were handed back", false, metric("espalier_handed_back_pods_total{}")},
}

// undone are the deeds of wrappers that were not done, or were although they must not be.
func (e *evidence) undone() (all []string) {
	for _, w := range wrappers {
		if n := w.count(e); w.never != (n == 0) {
			all = append(all, fmt.Sprintf("upstream.Adapt, %s: of %q there are %v, want %s", w.name, w.what, n, map[bool]string{false: "some", true: "none"}[w.never]))
		}
	}
	return all
}

func metric(key string) func(*evidence) float64 {
	return func(e *evidence) float64 { return e.values[key] }
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// looked counts the pods whose binding had no answer and that were asked about, or were not.
func (t *traffic) looked(asked bool) (n float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.lost {
		n += one(t.asked.Has(name) == asked)
	}
	return n
}

// events counts the pods of a profile that got the event Scheduled.
func (e *evidence) events(profile string) (n float64) {
	for i := range e.announced {
		n += one(e.announced[i].ReportingController == profile)
	}
	return n
}

// mistaken counts the events that name a node where the pod is not.
func (e *evidence) mistaken() (n float64) {
	bound, _ := e.server.bindings()
	for i := range e.announced {
		event := &e.announced[i]
		n += one(!strings.HasSuffix(event.Note, " to "+bound[string(event.Regarding.UID)]))
	}
	return n
}

// batch is so many pods, which are more than are bound at once.
const batch = heldWith + 32

// stall has a batch of pods of all profiles come while the API server answers no binding, until the scheduler waits for it. Of two more, one fits nowhere
// and waits for other pods to be bound, and one has no node hint, so that it is decided about by a sample. The batch is over soon, so that there is room
// for the storm.
func (r *running) stall(t *testing.T, server *apiServer) {
	t.Helper()
	release := server.hold()
	awaiting := podOf("awaiting", "hard", "awaiting", shipped, nil)
	awaiting.Spec.NodeSelector = map[string]string{"disk": "none"}
	come := []*corev1.Pod{awaiting, podOf("preferring", "near", "preferring", sampling, nil)}
	for i := range batch {
		come = append(come, podOf(fmt.Sprint("batch-", i), "plain", "batch", stormy[i%len(stormy)], nil))
	}
	pods := server.CoreV1().Pods(namespace)
	for _, pod := range come {
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		must(t, err)
	}
	within(calming, func() bool { return r.held.Load() > 0 }) // what is missing is told of at the end
	release()
	within(calming, func() bool { bound, _ := server.bindings(); return len(bound) > batch })
	for _, pod := range come[1:] {
		must(t, pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	}
}

// observed is what is seen of a scheduler from around and from beneath upstream.Adapt: what goes in, and what comes out.
type observed struct {
	// since is when it last asked for a pod, or was given one. Only its loop uses it.
	since time.Time
	// held are the pods that it went without for a while, with many bindings under way.
	held atomic.Int64
	// few are the looks after a binding that were at some of the waiting pods, everyone those that were at all.
	few, everyone atomic.Int64
	// dry: there are no pods.
	dry bool
	// yielded: others ran before it was given a pod.
	yielded bool
	// sought are the pods that were looked for in the queue, and admitted the asking whether a pod is to be withheld.
	sought, admitted atomic.Int64
	// changed are the nodes that have changed, by what its trees are told.
	changed atomic.Int64
}

// A pod that is not given out for so long, with so many bindings under way, is held back. A scheduler waits as long for that many.
const (
	heldFor  = 90 * time.Millisecond
	heldWith = 128
)

// asks is called when the scheduler asks for its next pod.
func (r *running) asks(server *apiServer) {
	server.cycles.Add(1)
	r.since = time.Now()
}

var errDry = errors.New("there are no pods")

// yield sees whether others run before the scheduler is given a pod, where nobody runs unless they are let. It is for before the scheduler runs.
func (r *running) yield(t *testing.T) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r.dry = true
	defer func() { r.dry = false }()
	var ran atomic.Bool
	go ran.Store(true)
	// One turn in 61 is the scheduler's own again, by Go's rules of fairness.
	for range 3 {
		if _, err := r.NextEntity(klog.FromContext(r.ctx)); !errors.Is(err, errDry) {
			t.Fatal(err)
		}
	}
	r.yielded = ran.Load()
}

// beneath has what is asked of the queue seen, before anything is wrapped around it.
func (r *running) beneath(server *apiServer) {
	r.SchedulingQueue = &seenQueue{r.SchedulingQueue, &r.observed}
	pop := r.NextEntity
	r.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		if time.Since(r.since) >= heldFor && server.binding.Load() >= heldWith {
			r.held.Add(1)
		}
		if r.dry {
			return nil, errDry
		}
		entity, err := pop(logger)
		r.since = time.Now() // it may hand it back, and ask for another one
		return entity, err
	}
}

// seenQueue counts the looks at pods that wait.
type seenQueue struct {
	internalqueue.SchedulingQueue
	*observed
}

// MoveAllToActiveOrBackoffQueue looks at pods that wait.
func (q *seenQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj any, check internalqueue.PreEnqueueCheck) {
	if event == framework.EventAssignedPodAdd {
		if check == nil {
			q.everyone.Add(1)
		} else {
			q.few.Add(1)
		}
	}
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, check)
}

// GetPod looks for a pod. Nothing else does than what puts back the pods that the queue has discarded.
func (q *seenQueue) GetPod(name, namespace string, group *corev1.PodSchedulingGroup) (*framework.QueuedPodInfo, bool) {
	q.sought.Add(1)
	return q.SchedulingQueue.GetPod(name, namespace, group)
}

// follow makes the plugin SpreadTree, with what it is told of changes seen.
func (r *running) follow(ctx context.Context, args apiruntime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	pl, err := spreadtree.New(ctx, args, handle)
	if tree, is := pl.(*spreadtree.SpreadTree); is {
		return &seenTree{tree, &r.observed}, err
	}
	return pl, err
}

type seenTree struct {
	*spreadtree.SpreadTree
	*observed
}

// Follow tells the tree which nodes have changed.
func (t *seenTree) Follow(changes podcount.Changes) {
	if changes == nil {
		return
	}
	t.SpreadTree.Follow(seenChanges{changes, t.observed})
}

type seenChanges struct {
	podcount.Changes
	*observed
}

// Since is what the journal says.
func (c seenChanges) Since(position uint64) (nodes []string, now uint64, known bool) {
	nodes, now, known = c.Changes.Since(position)
	if known {
		c.changed.Add(int64(len(nodes)))
	}
	return nodes, now, known
}
