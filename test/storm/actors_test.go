// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// breath is the time between two deeds of one actor: all of them together do some
// thousand a second.
const breath = 4 * time.Millisecond

// actor changes the cluster, one deed after the other, as its own random numbers say.
type actor struct {
	*testing.T
	*rand.Rand
	server *apiServer
	// pods are the scheduler's own, not yet as they are now.
	pods  corelisters.PodLister
	deeds map[string]func(context.Context)
	name  string
	born  int
	done  *tally
}

// tally is how often an actor did what.
type tally struct {
	mu    sync.Mutex // guards times
	times map[string]int
}

// tallyOf begins a tally: nothing has been done.
func tallyOf(deeds map[string]func(context.Context)) *tally {
	c := &tally{times: make(map[string]int)}
	for deed := range deeds {
		c.times[deed] = 0
	}
	return c
}

func (c *tally) count(deed string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times[deed]++
}

// undone are the deeds that were never done.
func (c *tally) undone() (deeds []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for deed, times := range c.times {
		if times == 0 {
			deeds = append(deeds, deed)
		}
	}
	return deeds
}

// act does deeds until the context ends.
func (a *actor) act(ctx context.Context) {
	names := slices.Sorted(maps.Keys(a.deeds))
	pace := time.NewTicker(breath)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
			name := oneOf(a, names...)
			a.deeds[name](ctx)
			a.done.count(name)
		}
	}
}

// must takes what may happen to anybody among many: an object is gone, there already, or has changed.
func (a *actor) must(err error) {
	a.Helper()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		a.Errorf("%s: %v", a.name, err)
	}
}

func (a *actor) rarely(n int) bool { return a.IntN(n) == 0 }

// fresh is a name that nobody had before.
func (a *actor) fresh(what string) string {
	a.born++
	return fmt.Sprintf("%s-%s-%d", what, a.name, a.born)
}

func oneOf[T any](a *actor, of ...T) T { return of[a.IntN(len(of))] }

// somePod is one that fits, nil if there is none.
func (a *actor) somePod(fits func(*corev1.Pod) bool) *corev1.Pod {
	all, err := a.pods.List(labels.Everything())
	a.must(err)
	all = slices.DeleteFunc(all, func(p *corev1.Pod) bool { return !fits(p) })
	if len(all) == 0 {
		return nil
	}
	return oneOf(a, all...)
}

// crowded reports that there are pods enough, or that enough of them wait.
func (a *actor) crowded() bool {
	all, err := a.pods.List(labels.Everything())
	a.must(err)
	waiting := 0
	for _, p := range all {
		if p.Spec.NodeName == "" {
			waiting++
		}
	}
	return len(all) > 300 || waiting > 80
}

func (a *actor) deletePod(ctx context.Context, name string) {
	a.must(a.server.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

// changePod changes a pod as it is now, unless it is gone.
func (a *actor) changePod(ctx context.Context, name string, change func(*corev1.Pod)) {
	api := a.server.CoreV1().Pods(namespace)
	pod, err := api.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		change(pod)
		_, err = api.Update(ctx, pod, metav1.UpdateOptions{})
	}
	a.must(err)
}

// changeNode changes a node as it is now, unless it is gone.
func (a *actor) changeNode(ctx context.Context, change func(*corev1.Node)) {
	api := a.server.CoreV1().Nodes()
	node, err := api.Get(ctx, a.nodeName(), metav1.GetOptions{})
	if err == nil {
		change(node)
		_, err = api.Update(ctx, node, metav1.UpdateOptions{})
	}
	a.must(err)
}

func (a *actor) nodeName() string { return nodeName(a.IntN(nodes)) }

// nodes is how many there are while all are there.
const nodes = 24

func nodeName(i int) string { return fmt.Sprintf("n%02d", i) }

// newNode is one in three zones of two racks; some have an SSD, some are of ARM.
func newNode(i int, uid string) *corev1.Node {
	n := st.MakeNode().Name(nodeName(i)).UID(uid).Label(corev1.LabelHostname, nodeName(i)).
		Label(zone, string("abc"[i%3])).Label(rack, fmt.Sprint(i%6)).Label("disk", []string{"hdd", "ssd"}[i%2]).
		Label(corev1.LabelOSStable, "linux").Label(corev1.LabelArchStable, []string{"amd64", "arm64"}[i/12]).
		Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "20", corev1.ResourceCPU: "8"}).
		Condition(corev1.NodeReady, corev1.ConditionTrue, "", "").Obj()
	n.Status.RuntimeHandlers = []corev1.NodeRuntimeHandler{{Name: ""}, {Name: "sandbox"}}
	return n
}

// nodeDeeds are those of whoever runs the machines.
func (a *actor) nodeDeeds() map[string]func(context.Context) {
	toggle := func(to *string, x, y string) {
		if *to == x {
			*to = y
		} else {
			*to = x
		}
	}
	change := func(how func(*corev1.Node)) func(context.Context) {
		return func(ctx context.Context) { a.changeNode(ctx, how) }
	}
	label := func(key string, values ...string) func(context.Context) {
		return change(func(n *corev1.Node) {
			if value := oneOf(a, values...); value != "" {
				n.Labels[key] = value
			} else {
				delete(n.Labels, key)
			}
		})
	}
	return map[string]func(context.Context){
		"zone": label(zone, "a", "b", "c", "d", ""), "rack": label(rack, "0", "1", "2", "3", ""), "disk": label("disk", "ssd", "hdd"),
		"cordon":  change(func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable && a.rarely(3) }),
		"taint":   change(func(n *corev1.Node) { a.taint(n, "storm") }),
		"flap":    change(a.flap),
		"handler": change(func(n *corev1.Node) { toggle(&n.Status.RuntimeHandlers[1].Name, "sandbox", "other") }),
		"room": change(func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse(oneOf(a, "5", "20", "30"))
			n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(oneOf(a, "1", "4", "8"))
		}),
		"ports": change(func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.ReservedHostPortsAnnotation, oneOf(a, "", "8080/tcp", "nonsense"))
		}),
		"forgive": change(func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterview.FailuresForgivenAnnotation, time.Now().Format(time.RFC3339))
		}),
		"go":     a.goNode,
		"come":   a.comeNode,
		"return": a.comeNode,
	}
}

// taint puts a taint on a node, or takes it off; mostly the latter.
func (a *actor) taint(n *corev1.Node, key string) {
	had := len(n.Spec.Taints)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	if len(n.Spec.Taints) == had && a.rarely(2) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: oneOf(a, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule)})
	}
}

// flap makes a node ready or not, with the taint that then comes with it.
func (a *actor) flap(n *corev1.Node) {
	ready := n.Status.Conditions[0].Status == corev1.ConditionTrue
	n.Status.Conditions[0].Status = corev1.ConditionTrue
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	if ready && a.rarely(3) {
		n.Status.Conditions[0].Status = corev1.ConditionFalse
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	}
}

// goNode deletes a node, and some or all of its pods after it.
func (a *actor) goNode(ctx context.Context) {
	name := a.nodeName()
	a.must(a.server.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}))
	for range a.IntN(20) {
		if p := a.somePod(func(p *corev1.Pod) bool { return p.Spec.NodeName == name }); p != nil {
			a.deletePod(ctx, p.Name)
		}
	}
}

// comeNode brings a node back under the name that another had.
func (a *actor) comeNode(ctx context.Context) {
	_, err := a.server.CoreV1().Nodes().Create(ctx, newNode(a.IntN(nodes), a.fresh("node")), metav1.CreateOptions{})
	a.must(err)
}
