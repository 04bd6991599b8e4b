// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/upstream/nodefit"
)

// reported is a pod of which its kubelet has said something: what it has given to its container or to all of them, what it cannot give, and
// devices that stand for room of the node.
func reported(t *rapid.T, name string) *corev1.Pod {
	draw := func(what string, of ...string) corev1.ResourceList { return cpu(rapid.SampledFrom(of).Draw(t, what)) }
	p := pod(name, draw("request", "0", "1", "2"))
	if rapid.Bool().Draw(t, "port") {
		hostPort(rapid.Int32Range(80, 81).Draw(t, "number"), corev1.ProtocolTCP)(p)
	}
	if rapid.Bool().Draw(t, "container") {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "c", AllocatedResources: draw("allocated", "0", "1", "3"), Resources: &corev1.ResourceRequirements{Requests: draw("actual", "1", "3")},
		}}
	}
	if rapid.Bool().Draw(t, "whole pod") {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: draw("request of the pod", "1", "2")}
		p.Status.AllocatedResources, p.Status.Resources = draw("allocated to the pod", "1", "3"), &corev1.ResourceRequirements{Requests: draw("actual of the pod", "1", "3")}
	}
	if rapid.Bool().Draw(t, "infeasible") {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	}
	if rapid.Bool().Draw(t, "devices") {
		p.Spec.Containers[0].Resources.Requests[gpu] = draw("GPUs", "1", "2")[corev1.ResourceCPU]
	}
	return p
}

// However many changes there are between two questions, the answer is that of a node that has only ever been as it is.
func TestChangesAreCountedWhenSomebodyAsks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, there := nodefit.New(), map[string]*corev1.Pod{}
		is := node()
		is.Status.Allocatable[gpu] = resource.MustParse("4")
		n.Set(is)
		name := func() string { return fmt.Sprint("p", rapid.IntRange(0, 3).Draw(t, "pod")) }
		t.Repeat(map[string]func(*rapid.T){
			"a pod": func(t *rapid.T) {
				p := reported(t, name())
				there[p.Name] = p
				n.Add(p)
			},
			"the same once more": func(*rapid.T) {
				if p := there[name()]; p != nil {
					n.Add(p.DeepCopy())
				}
			},
			"its kubelet says something else": func(t *rapid.T) {
				if p := there[name()].DeepCopy(); p != nil {
					p.Status = reported(t, p.Name).Status
					there[p.Name] = p
					n.Add(p)
				}
			},
			"gone": func(t *rapid.T) {
				gone := name()
				if _, known := there[gone]; n.Remove(types.UID(gone)) != known {
					t.Fatalf("%s was there: %t", gone, known)
				}
				delete(there, gone)
			},
			"the node": func(t *rapid.T) {
				is = is.DeepCopy()
				is.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(rapid.SampledFrom([]string{"2", "4", "8"}).Draw(t, "allocatable"))
				n.Set(nil)
				n.Set(is)
			},
			"a question": func(t *rapid.T) {
				fresh := nodefit.New()
				fresh.Set(is)
				for _, p := range there {
					fresh.Add(p)
				}
				asks := pod("asks", cpu("100"), hostPort(80, corev1.ProtocolTCP)) // what is free is in the reason
				asks.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("100")
				got, want := n.Refuses(asks), fresh.Refuses(asks)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("it is refused because %q, and by a node that has only ever been so because %q", got, want)
				}
			},
		})
	})
}

// A pod is said to have changed some times until it runs. Most of these changes leave its room as it is.
func TestAChangeIsNotComputedAtOnce(t *testing.T) {
	n, p := nodefit.New(), pod("a", cpu("1"))
	n.Set(node())
	n.Add(p)
	n.Refuses(pod("asks", cpu("1")))
	n.Add(p)
	if made := testing.AllocsPerRun(100, func() { n.Add(p) }); made > 1 {
		t.Errorf("with each change %v objects are made", made)
	}
}

// Who reads pods from a cache has their latest state in memory. An older one is not to be kept there as well, whether anybody asks or not.
func TestAnOlderStateIsNotKept(t *testing.T) {
	n := nodefit.New()
	n.Set(node())
	older := pod("a", cpu("1"))
	n.Add(older)
	n.Refuses(pod("asks", cpu("1")))
	kept := weak.Make(older)
	n.Add(pod("a", cpu("1")))
	older = nil //nolint:ineffassign,wastedassign // nobody else has it
	runtime.GC()
	if kept.Value() != nil {
		t.Error("it is in memory")
	}
	runtime.KeepAlive(n)
}
