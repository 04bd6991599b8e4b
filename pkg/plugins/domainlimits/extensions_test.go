// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"
)

// whatIf is a cycle of a pod, and clones of its state in which pods come and go.
type whatIf struct {
	*rig
	pod   *corev1.Pod
	nodes []fwk.NodeInfo
}

func (r *rig) whatIf(pod *corev1.Pod) (*whatIf, fwk.CycleState) {
	r.Helper()
	w := &whatIf{r, pod, r.nodes()}
	state := framework.NewCycleState()
	if _, s := r.pl.PreFilter(r.ctx, state, pod, w.nodes); !s.IsSuccess() {
		r.Fatalf("PreFilter: %v", s)
	}
	return w, state
}

func (w *whatIf) node(name string) fwk.NodeInfo {
	return w.nodes[slices.IndexFunc(w.nodes, func(n fwk.NodeInfo) bool { return n.Node().Name == name })]
}

func (w *whatIf) add(state fwk.CycleState, pod *corev1.Pod, node string) {
	w.Helper()
	info, err := framework.NewPodInfo(pod)
	w.must(err)
	if s := w.pl.PreFilterExtensions().AddPod(w.ctx, state, w.pod, info, w.node(node)); !s.IsSuccess() {
		w.Fatal(s)
	}
}

func (w *whatIf) remove(state fwk.CycleState, pod *corev1.Pod, node string) {
	w.Helper()
	info, err := framework.NewPodInfo(pod)
	w.must(err)
	if s := w.pl.PreFilterExtensions().RemovePod(w.ctx, state, w.pod, info, w.node(node)); !s.IsSuccess() {
		w.Fatal(s)
	}
}

func (w *whatIf) fits(state fwk.CycleState) (names []string) {
	for _, n := range w.nodes {
		if w.pl.Filter(w.ctx, state, w.pod, n).IsSuccess() {
			names = append(names, n.Node().Name)
		}
	}
	return names
}

// A what-if says the same as a cycle would in which it had come true.
func TestWhatIfsComeTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t.Context(), t)
		names := []string{"a1", "a2", "b1", "b2", "n"}
		r.join("a1 rack=a", "a2 rack=a", "b1 rack=b", "b2 rack=b", "n")
		serial := 0
		draw := func() (*corev1.Pod, string) {
			serial++
			revision := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "revision")
			on := rapid.SampledFrom(names).Draw(t, "node")
			p := web(fmt.Sprint("x", serial), revision, "").Node(on)
			if rapid.IntRange(0, 4).Draw(t, "terminating") == 0 {
				p.Terminating()
			}
			return p.Obj(), on
		}
		var there []*corev1.Pod
		for range rapid.IntRange(0, 8).Draw(t, "there") {
			p, _ := draw()
			r.must(r.cache.AddPod(r.logger, p))
			there = append(there, p)
		}
		limits := fmt.Sprintf("node.name=%d,rack=%d", rapid.IntRange(1, 3).Draw(t, "perNode"), rapid.IntRange(1, 4).Draw(t, "perRack"))
		w, state := r.whatIf(web("p", "2", limits).Obj())
		before, original := w.fits(state), state
		state = original.Clone()
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			if len(there) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(there)-1).Draw(t, "which")
				w.remove(state, there[i], there[i].Spec.NodeName)
				r.must(r.cache.RemovePod(r.logger, there[i]))
				there = slices.Delete(there, i, i+1)
				continue
			}
			p, on := draw()
			w.add(state, p, on)
			r.must(r.cache.AddPod(r.logger, p))
			there = append(there, p)
		}
		if now := w.fits(original); !slices.Equal(now, before) {
			t.Fatalf("without what is supposed %q fit, and %q by now", before, now)
		}
		supposed := w.fits(state)
		if came, _ := r.filter(w.pod); !slices.Equal(supposed, came) {
			t.Fatalf("under %s, the what-if lets %q fit, and when it is true %q do", limits, supposed, came)
		}
	})
}
