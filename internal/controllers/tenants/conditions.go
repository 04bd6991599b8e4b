// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 4096

// conditions brings conditions up to date. One whose status is as before keeps its time, so that a status that says the same is not
// written again.
func (s *statuses) conditions(to *[]metav1.Condition, generation int64, now []metav1.Condition) {
	*to = slices.Clone(*to)
	for _, c := range now {
		c.ObservedGeneration, c.LastTransitionTime, c.Message = generation, s.now, syntax.CutTo(c.Message, maxMessage)
		meta.SetStatusCondition(to, c)
	}
}

func condition(kind string, is bool, reason, format string, args ...any) metav1.Condition {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func (s *statuses) partitionConditions(p *allocations.Partition, q *allocations.Queue) []metav1.Condition {
	all := []metav1.Condition{s.sharedNodes(p)}
	if err := p.Invalid(); err != nil {
		return append(all, condition(placementv1alpha1.ConditionAccepted, false, placementv1alpha1.ReasonInvalid, "%s; its allocations are not accepted, and their pods wait", err),
			condition(placementv1alpha1.ConditionOvercommitted, false, placementv1alpha1.ReasonNotAccepted, "the partition is not accepted: see the condition Accepted"))
	}
	return append(all, condition(placementv1alpha1.ConditionAccepted, true, placementv1alpha1.ReasonValid, "the partition can be read"), overcommitted(p, q))
}

// sharedNodes names the partitions that select some of the same nodes.
func (s *statuses) sharedNodes(p *allocations.Partition) metav1.Condition {
	shared := s.order.SharedNodes(p, s.nodes)
	if len(shared) == 0 {
		return condition(placementv1alpha1.ConditionConflicted, false, placementv1alpha1.ReasonNoConflict, "no other partition selects any of the same nodes")
	}
	return condition(placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedNodes,
		"other partitions select some of the same nodes, which are the oldest one's: %s; change a nodeSelector", counted(shared, "node"))
}

// overcommitted says of which resources more is reserved than may be.
func overcommitted(p *allocations.Partition, q *allocations.Queue) metav1.Condition {
	var beyond []string
	size, reserved := q.List(q.Size), q.List(q.Reserved)
	for i, name := range q.Resources {
		if float64(q.Reserved.At(i))*100 > float64(q.Size.At(i))*float64(p.ReservablePercent) {
			has, wants := size[name], reserved[name]
			beyond = append(beyond, fmt.Sprintf("%s of %s %s", wants.String(), has.String(), name))
		}
	}
	for _, name := range q.Absent {
		beyond = append(beyond, fmt.Sprintf("%s, which no node has", name))
	}
	if len(beyond) == 0 {
		return condition(placementv1alpha1.ConditionOvercommitted, false, placementv1alpha1.ReasonWithinFraction, "its allocations reserve no more than %d %% of what its nodes have", p.ReservablePercent)
	}
	return condition(placementv1alpha1.ConditionOvercommitted, true, placementv1alpha1.ReasonBeyondFraction,
		"its allocations reserve %s, and %d %% may be reserved: add nodes, or reserve less. Reservations may not be kept when nodes are lost or capacity is scattered", strings.Join(beyond, ", "), p.ReservablePercent)
}

func (s *statuses) allocationConditions(a *allocations.Allocation) []metav1.Condition {
	conflicted := condition(placementv1alpha1.ConditionConflicted, false, placementv1alpha1.ReasonNoConflict, "no other allocation claims any of the same pods")
	if rivals := s.order.Rivals[a]; len(rivals) > 0 {
		named := make(map[string]int)
		for rival, n := range rivals {
			named[rival.Name] = n
		}
		conflicted = condition(placementv1alpha1.ConditionConflicted, true, placementv1alpha1.ReasonSharedPods,
			"other allocations claim some of the same pods, which are the oldest one's: %s; change the assignments", counted(named, "pod"))
	}
	p, reason, err := s.order.PartitionOf(a)
	if err != nil {
		return []metav1.Condition{conflicted, condition(placementv1alpha1.ConditionAccepted, false, reason, "%s; its pods that run go on, and those that wait stay Pending", err)}
	}
	message, q := "the allocation can be read", s.queueOf(p)
	if unknown := absent(a, q); unknown != "" {
		message += "; no node of the partition has " + unknown + ", and to reserve it has no effect until one does: correct the name, or add such nodes"
	}
	if lacks := lacking(a, q); lacks != "" {
		message += "; it reserves no " + lacks + ", which others of the partition do: reserve that as well, or all its pods are beyond the reservation"
	}
	return []metav1.Condition{conflicted, condition(placementv1alpha1.ConditionAccepted, true, placementv1alpha1.ReasonValid, "%s", message)}
}

// absent are the resources that an allocation reserves and no node of its partition has.
func absent(a *allocations.Allocation, q *allocations.Queue) string {
	var names []string
	for _, name := range q.Absent {
		if a.Reserved[name] > 0 {
			names = append(names, string(name))
		}
	}
	return strings.Join(names, " or ")
}

// lacking are the resources that an allocation does not reserve, and others of its partition do. One that reserves nothing lacks none.
func lacking(a *allocations.Allocation, q *allocations.Queue) string {
	var names []string
	for i, name := range q.Resources {
		if a.Reserved[name] == 0 && q.Reserved.At(i) > 0 {
			names = append(names, string(name))
		}
	}
	if len(a.Reserved) == 0 {
		return ""
	}
	return strings.Join(names, " and no ")
}

// counted names some objects with how many things each shares. The one with the most comes first.
func counted(shared map[string]int, thing string) string {
	const most = 5
	names := make([]string, 0, len(shared))
	for name := range shared {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(shared[b], shared[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, name := range names[:min(len(names), most)] {
		plural := "s"
		if shared[name] == 1 {
			plural = ""
		}
		parts = append(parts, fmt.Sprintf("%q (%d %s%s)", name, shared[name], thing, plural))
	}
	if more := len(names) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}
