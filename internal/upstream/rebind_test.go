// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// noRoom is the arbiter's answer, as a client gets it.
func noRoom(node string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: "node " + node + " has no room",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: clusterview.RefusedBinding, Message: node}}},
	}}
}

// full refuses bindings to some nodes.
func full(nodes ...string) func(pod, node string) error {
	return func(_, node string) error {
		if slices.Contains(nodes, node) {
			return noRoom(node)
		}
		return nil
	}
}

// webPod is one of a workload that is spread over nodes.
func webPod(name string) *st.PodWrapper {
	return st.MakePod().Namespace("ns").Name(name).UID(name).Label(clusterview.WorkloadLabel, "web").SchedulerName("espalier-scheduler").
		Req(map[corev1.ResourceName]string{"cpu": "1"})
}

// heights are nodes n1, n2 and so on, with as many pods of the workload.
func heights(pods ...int) (objects []runtime.Object) {
	for i, n := range pods {
		node := fmt.Sprint("n", i+1)
		objects = append(objects, st.MakeNode().Name(node).Label("kubernetes.io/hostname", node).Capacity(map[corev1.ResourceName]string{"cpu": "100", "pods": "110"}).Obj())
		for j := range n {
			objects = append(objects, webPod(fmt.Sprintf("there-%s-%d", node, j)).Node(node).Obj())
		}
	}
	return objects
}

// The candidates are the best nodes in their order, as many as there may be: with 0, 1, 1 and 2 pods on four nodes the first three. Those that are equal
// come in any order.
func TestVector_VV7_Candidates(t *testing.T) {
	s := startLoop(t, 3, heights(0, 1, 1, 2)...)
	s.refuse(full("n1", "n2", "n3", "n4"))
	s.create(webPod("p"))
	tried := s.tried("p", 3)
	slices.Sort(tried[1:])
	if !slices.Equal(tried, []string{"n1", "n2", "n3"}) {
		t.Errorf("it is bound to %v", tried)
	}
	s.failed("p", 1)
	// Where there are fewer nodes, all of them.
	s = startLoop(t, 3, heights(1, 0)...)
	s.refuse(full("n1", "n2"))
	s.create(webPod("p"))
	if tried := s.tried("p", 2); !slices.Equal(tried, []string{"n2", "n1"}) {
		t.Errorf("it is bound to %v", tried)
	}
	s.failed("p", 1)
}

func TestVector_VV8_MultiBind(t *testing.T) {
	s := startLoop(t, 3, heights(0, 1, 1)...)
	s.refuse(full("n1"))
	s.create(webPod("p"))
	node := s.bound("p")
	if node == "n1" || len(s.tried("p", 2)) != 2 {
		t.Errorf("it is on %s, after bindings to %v", node, s.tried("p", 2))
	}
	// It is no failure of the pod: nothing is said of it, and the event names the node where it is.
	s.said("p", "Scheduled", "Successfully assigned ns/p to "+node)
	s.failed("p", 0)
	// Nothing is left on the node that refused.
	s.counts(map[string]int{"n1": 0, "n2": 1, "n3": 1}, node)

	// All conflict: the pod is put back, and counts as tried once more. It is bound when there is room.
	s.refuse(full("n1", "n2", "n3"))
	s.create(webPod("q"))
	s.tried("q", 3)
	s.failed("q", 1)
	s.refuse(full())
	s.bound("q")
	if n := len(s.tried("q", 4)); n != 4 {
		t.Errorf("it took %d bindings, want 4", n)
	}
}

// With one candidate it is as kube-scheduler has it: one binding, and back-off.
func TestOneCandidate(t *testing.T) {
	s := startLoop(t, 1, heights(0, 0)...)
	first := ""
	s.refuse(func(_, node string) error {
		if first == "" {
			first = node
		}
		return full(first)("", node)
	})
	s.create(webPod("p"))
	s.failed("p", 1)
}

// A message is no format, where no event is left out and no pod bound elsewhere either.
func TestMessagesAreNoFormats(t *testing.T) {
	l := newLoop(t, loopConfiguration, func(o *Options) { o.Candidates = nil }, heights(0)...)
	l.start()
	l.refuse(func(string, string) error { return errors.New("over 90%d") })
	l.create(webPod("p"))
	l.said("p", "FailedScheduling", `running Bind plugin "RecordingBinder": over 90%d`)
}

// What is no refusal of the arbiter's is a failure of the pod.
func TestOtherErrorsAreFailures(t *testing.T) {
	s := startLoop(t, 3, heights(0, 0)...)
	s.refuse(func(string, string) error {
		return apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("not on a Sunday"))
	})
	s.create(webPod("p"))
	s.failed("p", 1)
	if tried := s.tried("p", 1); len(tried) != 1 {
		t.Errorf("it is bound to %v", tried)
	}
}

// A pod of the same batch has come to the second best node meanwhile. The pod that is refused goes where the batch stays even.
func TestTheNextNodeIsTheBestByThen(t *testing.T) {
	s := startLoop(t, 3, heights(0, 0, 0)...)
	s.refuse(func(pod, node string) error {
		if pod != "first" || len(s.tried("first", 1)) > 1 {
			return nil
		}
		s.create(webPod("second"))
		s.bound("second")
		return noRoom(node)
	})
	s.create(webPod("first"))
	nodes := []string{s.tried("first", 1)[0], s.bound("second"), s.bound("first")}
	if slices.Sort(nodes); !slices.Equal(nodes, []string{"n1", "n2", "n3"}) {
		t.Errorf("the pod that was refused, the other one, and where it is now: %v", nodes)
	}
}

// Who has written something for its node, was nominated for it, or is one of a group, is decided anew at once.
func TestNewCycleAtOnce(t *testing.T) {
	for name, change := range map[string]func(*st.PodWrapper){
		"volumes and the like": func(p *st.PodWrapper) { p.Annotation("prebind", "yes") },
		"nominated":            func(p *st.PodWrapper) { p.NominatedNodeName("n1") },
		"one of a group":       func(p *st.PodWrapper) { p.PodGroupName("g") },
	} {
		t.Run(name, func(t *testing.T) {
			s := startLoop(t, 3, heights(0, 1)...)
			refusals := 0
			s.refuse(func(_, node string) error {
				if refusals++; refusals > 1 {
					return nil
				}
				return noRoom(node)
			})
			p := webPod("p")
			change(p)
			s.create(p)
			s.bound("p")
			s.metric("again", 1) // and not after a back-off
		})
	}
	// A pod that is refused again and again waits in the end.
	s := startLoop(t, 3, heights(0, 1)...)
	s.refuse(full("n1", "n2"))
	s.create(webPod("p").Annotation("prebind", "yes"))
	s.tried("p", 3)
	s.metric("again", 2)
	s.metric("backoff", 1)
}

// A pod that waits for what the refused one took on its node need not wait any more.
func TestWhoWaitsForTheNodeIsTriedAgain(t *testing.T) {
	s := startLoop(t, 3, heights(0, 1)...)
	s.refuse(func(pod, node string) error {
		if pod != "p" || node != "n1" {
			return nil
		}
		s.create(st.MakePod().Namespace("ns").Name("q").UID("q").SchedulerName("espalier-scheduler").NodeSelector(map[string]string{"kubernetes.io/hostname": "n1"}).HostPort(80))
		s.failed("q", 1)
		return noRoom(node)
	})
	s.create(webPod("p").HostPort(80))
	if p, q := s.bound("p"), s.bound("q"); p != "n2" || q != "n1" {
		t.Errorf("p is on %s, and q on %s", p, q)
	}
}

// The pod is deleted while it is being bound. It is not put anywhere else.
func TestDeletedMeanwhile(t *testing.T) {
	s := startLoop(t, 3, heights(0, 0)...)
	s.refuse(func(pod, node string) error {
		if pod != "p" {
			return nil
		}
		s.delete("p")
		return noRoom(node)
	})
	s.create(webPod("p"))
	s.tried("p", 1)
	s.refuse(full())
	s.create(webPod("q"))
	s.create(webPod("r"))
	s.counts(map[string]int{"n1": 0, "n2": 0}, s.bound("q"), s.bound("r"))
	if tried := s.tried("p", 1); len(tried) != 1 {
		t.Errorf("it was bound to %v", tried)
	}
}

// A hundred pods of which many are refused by a third of the nodes, each node once: all are bound, each once, and what the scheduler counts is what is there.
// A node that refused one pod for ever would, with two like it, be the least loaded in the end, and all candidates that the pod has.
func TestManyRefusals(t *testing.T) {
	s := startLoop(t, 3, heights(0, 0, 0, 0, 0, 0, 0, 0)...)
	var refused sync.Map
	s.refuse(func(pod, node string) error {
		if _, before := refused.LoadOrStore(pod+" "+node, true); !before && (int(pod[len(pod)-1])+int(node[len(node)-1]))%3 == 0 {
			return noRoom(node)
		}
		return nil
	})
	const pods = 100
	for i := range pods {
		s.create(webPod(fmt.Sprint("p-", i)))
	}
	want := map[string]int{}
	for i := range pods {
		want[s.bound(fmt.Sprint("p-", i))]++
	}
	s.counts(want)
	if least, most := slices.Min(slices.Collect(maps.Values(want))), slices.Max(slices.Collect(maps.Values(want))); most-least > 4 {
		t.Errorf("the nodes have %v pods", want)
	}
}

// A node that has refused a pod is none for it, and for no other.
func TestExcludedNodesAreNotRemembered(t *testing.T) {
	s := startLoop(t, 3, heights(0, 1)...)
	s.refuse(func(pod, node string) error {
		if pod == "p" && node == "n1" {
			return noRoom(node)
		}
		return nil
	})
	s.create(webPod("p"))
	if node := s.bound("p"); node != "n2" {
		t.Errorf("p is on %s", node)
	}
	s.create(webPod("q"))
	if node := s.bound("q"); node != "n1" {
		t.Errorf("q, which is alike, is on %s", node)
	}
}

// preBinder is a plugin that has something to do for some pods before they are bound.
type preBinder struct{}

func (preBinder) Name() string { return "PreBinder" }

func (preBinder) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if pod.Annotations["prebind"] == "" {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

func (preBinder) PreBind(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return nil
}

// metric waits until so many refusals have had an outcome.
func (l *loop) metric(outcome string, want int) {
	l.Helper()
	l.until(fmt.Sprintf("%d refusals with outcome %s", want, outcome), func() bool {
		got, err := testutil.GetCounterMetricValue(refusedBindings.WithLabelValues("espalier-scheduler", outcome))
		return err == nil && int(got) == want
	})
}
