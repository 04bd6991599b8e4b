// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package feasibility

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Class is the filters' answers for nodes, for pods that they cannot tell apart, and
// why they refused those that they did. Whose pods are spread is nothing to them, so that
// workloads with the same needs share it.
//
// That a node was allowed is not believed in a later cycle: the one that is proposed is
// asked about in any case, and no other answer decides.
type Class struct {
	*tree.Feasibility
	// reasons has the status of each number but otherReason.
	reasons []*fwk.Status
	numbers map[reason]int
	// expiring are the nodes to be asked about again in the next cycle.
	expiring []int32
	// preemption is what it came to when it was tried, of pods that may preempt and of those
	// that never do.
	preemption map[bool]learned
}

// reason is a status as a key.
type reason struct {
	code            fwk.Code
	plugin, reasons string
}

// hopeless is all that the words of a preemption without victims depend on: how many nodes
// there are, for which reasons they were refused, and how many for such as victims could change.
type hopeless struct {
	message           string
	nodes, resolvable int
}

type learned struct {
	of     hopeless
	status *fwk.Status
}

// otherReason is any beyond maxReasons. Most filters have a few, and ours of host ports as
// many as a node has ports.
const (
	otherReason = 0
	maxReasons  = 1000
)

// NewClass returns that of pods with the same needs as one, tolerations among them.
func NewClass(nodes *tree.Nodes, pod *corev1.Pod) *Class {
	return &Class{Feasibility: Of(nodes, pod), reasons: []*fwk.Status{nil}, numbers: make(map[reason]int), preemption: make(map[bool]learned)}
}

// Of returns a Feasibility without answers, of pods with a pod's tolerations and requests.
func Of(nodes *tree.Nodes, pod *corev1.Pod) *tree.Feasibility {
	f, tolerations := tree.NewFeasibility(nodes), pod.Spec.Tolerations
	f.Tolerates = func(soft string) bool { return clusterview.ToleratesSoft(tolerations, soft) }
	f.Request = clusterview.Request(pod)
	return f
}

// Refresh forgets the answers for nodes that have changed, and those not to be kept.
func (f *Class) Refresh() {
	f.Feasibility.Refresh()
	for _, node := range f.expiring {
		f.Recheck(node)
	}
	f.expiring = f.expiring[:0]
}

// reason returns the number of a status.
func (f *Class) reason(s *fwk.Status) int {
	key := reason{s.Code(), s.Plugin(), strings.Join(s.Reasons(), "\x00")}
	number, known := f.numbers[key]
	if !known && len(f.reasons) < maxReasons {
		number = len(f.reasons)
		f.reasons = append(f.reasons, s)
		f.numbers[key] = number
	}
	return number
}

// Refusal says that the filters refuse all nodes to a pod, in the words of the scheduler's
// own diagnosis. It is nil if they do not, or if preemption might help: that a pod cannot
// take the place of any other is known without trying if none has a lower priority.
func (f *Class) Refusal(pod *corev1.Pod, lowest int32) *clusterview.Refusal {
	if f.Open() > 0 || mayPreempt(pod, lowest) {
		return nil
	}
	r, of := &clusterview.Refusal{}, hopeless{}
	count := make(map[string]int)
	for number, nodes := range f.Reasons() {
		if nodes == 0 {
			continue
		}
		if number == otherReason {
			return nil
		}
		s := f.reasons[number]
		of.nodes += nodes
		if s.Code() == fwk.Unschedulable {
			of.resolvable += nodes
		} else if s.Code() != fwk.UnschedulableAndUnresolvable {
			return nil
		}
		if !slices.Contains(r.Plugins, s.Plugin()) {
			r.Plugins = append(r.Plugins, s.Plugin())
		}
		for _, reason := range s.Reasons() {
			count[reason] += nodes
		}
	}
	reasons := make([]string, 0, len(count))
	for reason, nodes := range count {
		reasons = append(reasons, strconv.Itoa(nodes)+" "+reason)
	}
	slices.Sort(reasons)
	r.Message = strings.Join(reasons, ", ")
	of.message = r.Message
	if is := f.preemption[never(pod)]; is.of == of {
		r.Preemption = is.status
	}
	r.Learn = func(preemption *fwk.Status) { f.preemption[never(pod)] = learned{of, preemption} }
	return r
}

func never(pod *corev1.Pod) bool {
	return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
}

// mayPreempt reports that a pod may take the place of another one. It is false only if no
// pod has a lower priority than it has.
func mayPreempt(pod *corev1.Pod, lowest int32) bool {
	return !never(pod) && corev1helpers.PodPriority(pod) > lowest
}
