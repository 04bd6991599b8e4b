// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// other is a namespace beside the usual one.
const other = "other"

// apart is the time between two steps: no two pods are of one age, and one that was refused is tried again by the next step that helps it. Timers of the
// product are of whole seconds, or of tenths: of two that end at one moment, the test's and one of its, either may be first.
const apart = 1037 * time.Millisecond

// settle waits until nothing moves any more, and all answers are there.
func settle() {
	time.Sleep(10 * reply)
	synctest.Wait()
}

// goldenRun is one section as it runs, in its bubble.
type goldenRun struct {
	*testing.T
	out     strings.Builder
	titles  map[string]bool
	server  *apiServer
	r       *running
	gate    *gate
	journal *journal
	seen    *seen
	// profile is the one whose pods have no other said in their titles.
	profile string
	counted map[string]float64
	// pause is how long it takes until a pod is decided, at most.
	pause time.Duration
	// first is what happens before each step.
	first func()
	// holds is how many pods have held the scheduler, see held.
	holds int
	// mayBeEmpty: a block without lines is left out.
	mayBeEmpty bool
	// refusal returns the answer to a binding that is not to be made, nil for others. Bindings ask for it beside what happens.
	refusal atomic.Pointer[func(*corev1.Binding) error]
}

// runSection returns what comes of a section.
func runSection(t *testing.T, s section, seen *seen) string {
	g := &goldenRun{
		T: t, titles: make(map[string]bool), server: newOfflineAPIServer(), gate: newGate(), seen: seen, profile: shipped,
		first: func() {},
	}
	g.refuse(allow)
	g.journal = newJournal(g)
	reported = g.journal.reported
	defer func() { reported = nil }()
	fmt.Fprintf(&g.out, "%s%s: %s\n\nwhere levels are \"...\" they are %s\n\n", beginsSection, s.name, s.about, shippedLevels)
	for _, name := range []string{metav1.NamespaceSystem, namespace, other} {
		g.add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}})
	}
	defer g.end() // also of a section that fails: nothing may go on after it
	s.run(g)
	// What is counted of plugins is written once a second.
	time.Sleep(5 * time.Second)
	return strings.TrimSpace(g.out.String())
}

// refuse has bindings be answered so from now on.
func (g *goldenRun) refuse(answer func(*corev1.Binding) error) { g.refusal.Store(&answer) }

// end ends all that was started.
func (g *goldenRun) end() {
	g.gate.set(false)
	if g.r != nil {
		g.r.end()
	}
	g.server.close()
	synctest.Wait()
}

// begins waits until a scheduler has read what there is.
func (g *goldenRun) begins() {
	time.Sleep(2 * apart)
	synctest.Wait()
	g.counted = counts(g.T)
	g.journal.take()
}

// step does something, waits until nothing moves any more, and writes down what the scheduler has made of it.
func (g *goldenRun) step(title string, do func()) {
	g.Helper()
	g.write(title, func() []string {
		do()
		settle()
		return nil
	})
}

// wait is step for what comes of time. It writes nothing if nothing does.
func (g *goldenRun) wait(d time.Duration, title string) {
	g.Helper()
	g.mayBeEmpty = true
	g.step(fmt.Sprintf("%v pass: %s", d, title), func() { time.Sleep(d) })
	g.mayBeEmpty = false
}

// write writes a block: what do returns, what the scheduler wrote, and what it counted.
func (g *goldenRun) write(title string, do func() []string) {
	g.Helper()
	if g.titles[title] {
		g.Fatalf("two blocks of the section have the title %q", title)
	}
	g.titles[title] = true
	synctest.Wait()
	g.first()
	lines := append(do(), g.journal.take()...)
	time.Sleep(apart)
	synctest.Wait()
	for _, late := range g.journal.take() {
		lines = append(lines, "within a second, "+late)
	}
	if lines = append(lines, g.moved()...); g.mayBeEmpty && len(lines) == 0 {
		return
	}
	fmt.Fprintln(&g.out, title)
	for _, line := range lines {
		fmt.Fprintf(&g.out, "  %s\n", strings.ReplaceAll(line, "\n", "\\n"))
	}
	fmt.Fprintln(&g.out)
}

// titleOf names a pod and what it is like.
func (g *goldenRun) titleOf(p *corev1.Pod, what string) string {
	title := fmt.Sprintf("pod %s: %s", p.Name, what)
	if p.Namespace != namespace {
		title = fmt.Sprintf("pod %s/%s: %s", p.Namespace, p.Name, what)
	}
	if p.Spec.SchedulerName != g.profile {
		title += ", for " + p.Spec.SchedulerName
	}
	return title
}

// place has a pod be decided. One that is refused is removed afterwards, so that it is not tried again beside those that come.
func (g *goldenRun) place(what string, p *corev1.Pod) {
	g.Helper()
	g.keep(what, p)
	if g.pod(p.Namespace, p.Name).Spec.NodeName == "" {
		g.remove(p.Namespace, p.Name)
	}
}

// keep is place for a pod that stays when it is refused.
func (g *goldenRun) keep(what string, p *corev1.Pod) {
	g.Helper()
	g.seen.kind(what)
	g.write(g.titleOf(p, what), func() []string {
		g.add(p)
		time.Sleep(g.pause)
		settle()
		return g.outside(p)
	})
}

// outside says of a pod that nothing was written about why.
func (g *goldenRun) outside(p *corev1.Pod) []string {
	if g.journal.has(p.Name) {
		return nil
	}
	if info, known := g.r.SchedulingQueue.GetPod(p.Name, p.Namespace, p.Spec.SchedulingGroup); known && info.GatingPlugin != "" {
		g.seen.gated(info.GatingPlugin)
		return []string{"kept out of the queue by " + info.GatingPlugin}
	}
	return []string{"not tried"}
}

// batch has pods be decided that were there together.
func (g *goldenRun) batch(what string, all ...*corev1.Pod) {
	g.Helper()
	g.seen.kind(what)
	g.held(what, func() {
		for _, p := range all {
			g.add(p)
			synctest.Wait()
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// held is step for what the scheduler is to find all at once. It is held while it happens: with the next pod in its hands, as it always waits for one,
// and that is one more.
func (g *goldenRun) held(title string, do func()) {
	g.Helper()
	g.step(title, func() {
		g.gate.set(true)
		g.holds++
		name := fmt.Sprint("holds-", g.holds)
		g.add(podOf(name, "plain", name, g.profile, nil))
		settle()
		do()
		synctest.Wait()
		g.gate.set(false)
	})
}

// add makes objects, as somebody else than the scheduler does.
func (g *goldenRun) add(all ...runtime.Object) {
	g.Helper()
	for _, obj := range all {
		gvks, _, err := known.ObjectKinds(obj)
		must(g, err)
		object, err := meta.Accessor(obj)
		must(g, err)
		if object.GetCreationTimestamp().Time.IsZero() {
			object.SetCreationTimestamp(metav1.Now())
		}
		if object.GetUID() == "" {
			object.SetUID(uidOf(gvks[0].Kind, object.GetName()))
		}
		if gvks[0].Group == placementv1alpha1.SchemeGroupVersion.Group {
			obj.GetObjectKind().SetGroupVersionKind(gvks[0]) // it is sent as JSON
		}
		gvr, _ := meta.UnsafeGuessKindToResource(gvks[0])
		must(g, g.server.store.Create(gvr, obj.DeepCopyObject(), object.GetNamespace()))
	}
}

// change changes an object, as somebody else than the scheduler does.
func change[T runtime.Object](g *goldenRun, of schema.GroupVersionResource, ns, name string, how func(T)) {
	g.Helper()
	obj, err := g.server.store.Get(of, ns, name)
	must(g, err)
	how(obj.(T))
	must(g, g.server.store.Update(of, obj, ns))
}

var nodeResource = corev1.SchemeGroupVersion.WithResource("nodes")

// node changes a node, and says so.
func (g *goldenRun) node(name, what string, how func(*corev1.Node)) {
	g.Helper()
	g.step(fmt.Sprintf("node %s: %s", name, what), func() { change(g, nodeResource, "", name, how) })
}

// changePod changes a pod, without saying so. It is of the usual namespace unless its name says another one.
func (g *goldenRun) changePod(name string, how func(*corev1.Pod)) {
	g.Helper()
	ns, short, is := strings.Cut(name, "/")
	if !is {
		ns, short = namespace, name
	}
	change(g, pods, ns, short, how)
}

// pod is one as the API server has it.
func (g *goldenRun) pod(ns, name string) *corev1.Pod {
	g.Helper()
	obj, err := g.server.store.Get(pods, ns, name)
	must(g, err)
	return obj.(*corev1.Pod)
}

// remove deletes a pod, without saying so.
func (g *goldenRun) remove(ns, name string) {
	g.Helper()
	if err := g.server.store.Delete(pods, ns, name); !apierrors.IsNotFound(err) {
		must(g, err)
	}
	synctest.Wait()
}

// kubelets remove the pods that terminate.
func (g *goldenRun) kubelets(title string) {
	g.Helper()
	g.step(title, func() {
		for _, p := range g.server.allPods(g.T) {
			if p.DeletionTimestamp != nil {
				g.remove(p.Namespace, p.Name)
			}
		}
	})
}

// describeNode is a node of a cluster's header.
func describeNode(n *corev1.Node) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s:", n.Name)
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		if key != corev1.LabelHostname && key != corev1.LabelTopologyZone && key != corev1.LabelOSStable {
			fmt.Fprintf(&text, " %s=%s", strings.TrimPrefix(key, "kubernetes.io/"), n.Labels[key])
		}
	}
	fmt.Fprintf(&text, " cpu=%s pods=%s", n.Status.Allocatable.Cpu(), n.Status.Allocatable.Pods())
	for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
		fmt.Fprintf(&text, ", %s %s", strings.TrimPrefix(key, clusterview.Prefix), n.Annotations[key])
	}
	for _, taint := range n.Spec.Taints {
		fmt.Fprintf(&text, ", taint %s:%s", taint.Key, taint.Effect)
	}
	if n.Spec.Unschedulable {
		text.WriteString(", cordoned")
	}
	for _, i := range n.Status.Images {
		fmt.Fprintf(&text, ", image %s", i.Names[0])
	}
	return text.String()
}
