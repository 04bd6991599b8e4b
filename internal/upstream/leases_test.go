// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// ends has a node with so much room end so long after noon.
func (r *rig) ends(name string, after time.Duration) *corev1.Node {
	n := st.MakeNode().Name(name).Capacity(map[corev1.ResourceName]string{corev1.ResourcePods: "10"}).
		Annotation(clusterview.ValidUntilAnnotation, noon.Add(after).Format(time.RFC3339)).Obj()
	r.cache.AddNode(r.logger, n)
	return n
}

// What filters said of one pod is remembered for the next with the same lease. A node that took the first may not live long enough for the
// second; one that did not live long enough is not asked about again, unless the clock is put back.
func TestAnswersOverTime(t *testing.T) {
	r := newRig(t.Context(), t)
	r.ends("n1", 2*time.Hour)
	n2 := r.ends("n2", 90*time.Minute)
	web := func(name string) *st.PodWrapper {
		return st.MakePod().Namespace("ns").Name(name).UID(name).Label(clusterview.WorkloadLabel, "web")
	}
	pod := web("p").Annotation(clusterview.LeaseAnnotation, "1h").Obj()
	asked := &askedFor{Framework: r.wrapped.(*hintingFramework).Framework}
	r.wrapped.(*hintingFramework).Framework = asked
	want := func(why, node string, questions int) {
		t.Helper()
		asked.nodes = 0
		if got, _, refused := r.propose(pod); got != node || refused != nil || asked.nodes != questions {
			t.Errorf("%s: %q is proposed, %d nodes are asked about, want %q of %d; refused %t", why, got, asked.nodes, node, questions, refused != nil)
		}
	}
	want("the one that lives longer", "n1", 1)
	r.clock.SetTime(noon.Add(45 * time.Minute))
	want("an answer of before is asked for anew", "n1", 1)
	r.must(r.cache.AddPod(r.logger, web("q").Node("n1").Obj()))
	want("n2 has fewer pods, and lives for 45 minutes more", "n1", 2)
	want("which is remembered", "n1", 1)
	r.clock.SetTime(noon.Add(15 * time.Minute))
	want("until the clock is put back", "n2", 1)
	r.clock.SetTime(noon.Add(45 * time.Minute))
	want("it lives too short a time again", "n1", 2)
	longer := n2.DeepCopy()
	longer.Annotations[clusterview.ValidUntilAnnotation] = noon.Add(24 * time.Hour).Format(time.RFC3339)
	r.cache.UpdateNode(r.logger, n2, longer)
	want("until it is given a later end, by which nodes are compared anew", "n2", 2)
	r.clock.SetTime(noon.Add(25 * time.Hour))
	want("in the end nobody lives long enough", "", 2)
}

// A pod for which no node lives long enough is told so, once by all nodes and then at once.
func TestRefusedForItsLease(t *testing.T) {
	r := newRig(t.Context(), t)
	r.ends("n1", time.Hour)
	r.ends("n2", -time.Hour)
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Annotation(clusterview.LeaseAnnotation, "72h").Obj()
	const want = "0/2 nodes are available: 2 node(s) ended before the pod's lease would."
	_, state, _ := r.propose(pod)
	if got := r.words(r.wrapped, state, pod, r.diagnosis(r.wrapped, state, pod)); !strings.HasPrefix(got, want) {
		t.Errorf("it is told\n%s, not\n%s", got, want)
	}
	_, state, refused := r.propose(pod)
	if refused == nil {
		t.Fatal("it is not refused at once")
	}
	if got := r.words(r.wrapped, state, pod, refused); !strings.HasPrefix(got, want) {
		t.Errorf("the second time it is told\n%s, not\n%s", got, want)
	}
}

// The fast path and the full path choose the one that lives longer, and the lease is in the binding of both.
func TestTheNodeThatLivesLongerIsProposed(t *testing.T) {
	r := newRig(t.Context(), t)
	r.ends("n1", time.Hour)
	r.ends("n2", 30*time.Hour)
	r.ends("n3", 20*time.Hour)
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").Annotation(clusterview.LeaseAnnotation, "10h").Obj()
	node, state := r.hint(pod)
	if _, best := r.best(pod); node != "n2" || len(best) != 1 || best[0] != node {
		t.Errorf("%s is proposed, and %v are best", node, best)
	}
	for _, f := range []framework.Framework{r.wrapped, r.judge} {
		if f == r.judge {
			state = framework.NewCycleState()
			if _, status, _ := f.RunPreFilterPlugins(r.ctx, state, pod); !status.IsSuccess() {
				t.Fatal(status)
			}
		}
		if status := f.RunReservePluginsReserve(r.ctx, state, pod, node); status.Code() != fwk.Success {
			t.Fatal(status)
		}
		if got, want := clusterview.ReadBinding(state)[clusterview.LeaseExpiryAnnotation], noon.Add(10*time.Hour).Format(time.RFC3339); got != want {
			t.Errorf("the lease ends %s, want %s", got, want)
		}
	}
}
