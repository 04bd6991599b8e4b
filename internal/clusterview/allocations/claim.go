// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// systemCritical is the priority from which pods are critical to the system: SystemCriticalPriority of Kubernetes.
const systemCritical = 2_000_000_000

// Namespaces returns the labels of a namespace. It is false for one that is not known.
type Namespaces func(name string) (labels.Set, bool)

// Claims knows which allocation pods are of, as long as neither the tree nor the labels of namespaces change. It is safe for concurrent
// use.
type Claims struct {
	*Tree
	namespaces Namespaces

	mu sync.Mutex // guards in
	in map[string]*inNamespace
}

// inNamespace are the assignments for a namespace, in the order in which they are asked. Hundreds of teams may be told apart by a label, so
// that not all of them are asked about each pod.
type inNamespace struct {
	all []claimed
	// byLabel has by key and value where those are that want a label, and others where the rest is.
	byLabel map[string]map[string][]int
	others  []int
}

// claimed is an assignment with its allocation.
type claimed struct {
	*assignment
	of *Allocation
}

// Claim is what a pod is of.
type Claim struct {
	// Allocation is nil if the pod is of none.
	Allocation *Allocation
	// Priority is what its assignment says.
	Priority int
	// Rivals are allocations that claim it as well, and come after.
	Rivals []*Allocation
}

// Claims returns what knows which allocation pods are of.
func (t *Tree) Claims(namespaces Namespaces) *Claims {
	return &Claims{Tree: t, namespaces: namespaces, in: make(map[string]*inNamespace)}
}

// Exempt reports whether a pod is of no allocation, whoever claims it: the nodes of a DaemonSet's pods are chosen by their controller, and
// pods that are critical to the system wait for nobody.
func Exempt(pod *corev1.Pod) bool {
	return clusterview.Daemon(pod) || corev1helpers.PodPriority(pod) >= systemCritical
}

// Of returns what a pod is of. It is not known if its namespace is not, unless there are no allocations.
func (c *Claims) Of(pod *corev1.Pod) (claim Claim, known bool) {
	if len(c.Allocations) == 0 || Exempt(pod) {
		return Claim{}, true
	}
	its, known := c.inNamespace(pod.Namespace)
	if !known {
		return Claim{}, false
	}
	var few [16]int // each pod is looked at several times, and most may be of one or two
	for _, i := range its.asked(few[:0], pod.Labels) {
		as := its.all[i]
		switch {
		case as.of == claim.Allocation || !as.pods.Matches(labels.Set(pod.Labels)):
		case claim.Allocation == nil:
			claim.Allocation, claim.Priority = as.of, as.priority
		case len(claim.Rivals) == 0 || claim.Rivals[len(claim.Rivals)-1] != as.of:
			claim.Rivals = append(claim.Rivals, as.of)
		}
	}
	return claim, true
}

func (c *Claims) inNamespace(name string) (its *inNamespace, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if its, known = c.in[name]; known {
		return its, true
	}
	set, known := c.namespaces(name)
	if !known {
		return nil, false
	}
	its = &inNamespace{byLabel: make(map[string]map[string][]int)}
	for _, a := range c.Allocations {
		for i := range a.assignments {
			if a.assignments[i].namespaces.Matches(set) {
				its.add(claimed{&a.assignments[i], a})
			}
		}
	}
	c.in[name] = its
	return its, true
}

func (n *inNamespace) add(as claimed) {
	at := len(n.all)
	n.all = append(n.all, as)
	requirements, _ := as.pods.Requirements()
	for _, r := range requirements {
		values := r.ValuesUnsorted()
		if len(values) != 1 || r.Operator() != selection.In && r.Operator() != selection.Equals {
			continue
		}
		if n.byLabel[r.Key()] == nil {
			n.byLabel[r.Key()] = make(map[string][]int)
		}
		n.byLabel[r.Key()][values[0]] = append(n.byLabel[r.Key()][values[0]], at)
		return
	}
	n.others = append(n.others, at)
}

// asked adds where the assignments are that may select pods with these labels, in their order.
func (n *inNamespace) asked(at []int, set map[string]string) []int {
	at = append(at, n.others...)
	for key, values := range n.byLabel {
		if value, has := set[key]; has {
			at = append(at, values[value]...)
		}
	}
	slices.Sort(at)
	return at
}

// SaysTheSame reports whether what a pod says of itself is the same before and after a change, as far as allocations go by it.
func SaysTheSame(before, after *corev1.Pod) bool {
	return maps.Equal(before.Labels, after.Labels) && len(before.Spec.SchedulingGates) == len(after.Spec.SchedulingGates) && clusterview.SameAnnotation(before, after, clusterview.AllocationPriorityAnnotation) &&
		clusterview.SameAnnotation(before, after, clusterview.LeaseAnnotation)
}

// Check says why a pod of an allocation must wait whatever its position, nil if it need not. Such a pod is in no order.
func (c *Claims) Check(pod *corev1.Pod, a *Allocation) error {
	p, _, err := c.PartitionOf(a)
	if err != nil {
		return fmt.Errorf("allocation %q is not accepted: %w", a.Name, err)
	}
	// One with gates wants nothing yet. In line it would use up the reservation of others, and have a maximum stop those that run.
	if gates := pod.Spec.SchedulingGates; len(gates) > 0 && pod.Spec.NodeName == "" {
		return fmt.Errorf("the pod has the scheduling gate %q: whoever has set it takes it away", gates[0].Name)
	}
	if set, known := c.namespaces(pod.Namespace); known && !p.namespaces.Matches(set) {
		return fmt.Errorf("namespace %q is none of those whose pods may be of partition %q: change its labels, or the namespaceSelector of the Partition", pod.Namespace, p.Name)
	}
	// One that cannot be read is for the plugin NodeLifetime to refuse, if leases mean anything.
	if lease, err := clusterview.LeaseOf(pod, nil); err == nil && p.MaxLease > 0 && lease > p.MaxLease {
		return fmt.Errorf("annotation %s: %s is longer than the %s that partition %q allows: give a shorter lease, or raise its maxLeaseSeconds", clusterview.LeaseAnnotation, lease, p.MaxLease, p.Name)
	}
	if _, _, err := a.Group(pod); err != nil {
		return err
	}
	_, err = priorityOf(pod, 0)
	return err
}

// priorityOf is a pod's priority among those of its allocation, which is the assignment's unless the pod says otherwise.
func priorityOf(pod *corev1.Pod, assigned int) (int, error) {
	text, says := pod.Annotations[clusterview.AllocationPriorityAnnotation]
	if !says {
		return assigned, nil
	}
	priority, err := strconv.Atoi(text)
	if err != nil || priority < 0 || priority > allocation.MaxPriority {
		return assigned, fmt.Errorf("annotation %s %q: write a number from 0 to %d", clusterview.AllocationPriorityAnnotation, syntax.Cut(text), allocation.MaxPriority)
	}
	return priority, nil
}

// Bounds reports whether the allocation may keep a pod from running that has room and its turn: by its maximum, or by the size of the
// pod's identity group.
func (a *Allocation) Bounds(pod *corev1.Pod) bool {
	return a.maxUtilization > 0 || pod.Labels[clusterview.IdentityGroupLabel] != ""
}

// Group returns the identity group of a pod of the allocation, "" for none, and of how many pods it is.
func (a *Allocation) Group(pod *corev1.Pod) (name string, size int, err error) {
	name = pod.Labels[clusterview.IdentityGroupLabel]
	if name == "" {
		return "", 0, nil
	}
	size, known := a.groups[name]
	if !known {
		return "", 0, fmt.Errorf("label %s %q: allocation %q has no identity group of this name: add it to spec.identityGroups, or remove the label", clusterview.IdentityGroupLabel, name, a.Name)
	}
	return name, size, nil
}

// IdentityOf is the number that a pod with a node has, -1 for none. One without a node has none, whatever it says.
func IdentityOf(pod *corev1.Pod) int {
	id, err := strconv.Atoi(pod.Annotations[clusterview.IdentityAnnotation])
	if err != nil || id < 0 || pod.Spec.NodeName == "" {
		return -1
	}
	return id
}
