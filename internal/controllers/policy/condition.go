// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// maxNamed bounds the policies that a message names.
const maxNamed = 3

// maxMessage bounds a message, in bytes. The API server refuses the whole status for one
// of more than 32 Ki.
const maxMessage = 4096

// setConditions brings Accepted, Conflicted and Ready up to date. One that does not hold is
// False and not absent: its absence would mean that it is not known yet.
func (s *policyState) setConditions(conditions *[]metav1.Condition, now metav1.Time) {
	for _, c := range []metav1.Condition{s.accepted(), s.conflicted(), s.ready()} {
		// A condition whose status is as before keeps its time, so that a status that says the same is not written again.
		c.ObservedGeneration, c.LastTransitionTime = s.policy.Generation, now
		meta.SetStatusCondition(conditions, c)
	}
}

func (s *policyState) accepted() metav1.Condition {
	if s.beyond {
		return condition(placementv1alpha1.ConditionAccepted, metav1.ConditionFalse, placementv1alpha1.ReasonTooMany,
			fmt.Sprintf("%d policies of %s come before it, and no more than that have a say: merge policies, or delete some", clusterview.MaxPolicies, s.scope()))
	}
	if err := s.policy.Err(); err != nil {
		effect := "pods that need it stay Pending"
		if s.policy.ForNone() {
			effect = "it has a say in no namespace"
		}
		return condition(placementv1alpha1.ConditionAccepted, metav1.ConditionFalse, placementv1alpha1.ReasonInvalid, err.Error()+"; "+effect)
	}
	return condition(placementv1alpha1.ConditionAccepted, metav1.ConditionTrue, placementv1alpha1.ReasonValid, "the policy can be read")
}

// scope returns, in words, where policies are counted and compared: in the cluster for a ClusterPlacementPolicy, in the namespace else.
func (s *policyState) scope() string {
	if s.policy.Cluster() {
		return "the cluster"
	}
	return "the namespace"
}

// conflicted tells both sides of a conflict, each what it needs to know: who comes
// first. A policy of the namespace and one of the cluster are not in conflict: to come before each other is what they are for.
func (s *policyState) conflicted() metav1.Condition {
	before, after := s.split(func(r rival) bool { return r.policy.Cluster() == s.policy.Cluster() })
	if len(before)+len(after) == 0 {
		return condition(placementv1alpha1.ConditionConflicted, metav1.ConditionFalse, placementv1alpha1.ReasonNoConflict,
			"no other policy of "+s.scope()+" selects any of the same pods")
	}
	var parts []string
	reason := placementv1alpha1.ReasonPolicyAfter
	if len(before) > 0 {
		reason = placementv1alpha1.ReasonPolicyBefore
		parts = append(parts, "before this one: "+s.list(before))
	}
	if len(after) > 0 {
		parts = append(parts, "after this one: "+s.list(after))
	}
	parts = append(parts, "mode Override comes first, then the higher priority, then the older policy, then the name")
	return condition(placementv1alpha1.ConditionConflicted, metav1.ConditionTrue, reason,
		"other policies select some of the same pods: "+strings.Join(parts, "; "))
}

// ready sums up. It names the policies that come before this one, with how many of the pods each takes, also if this one is in force for
// others.
func (s *policyState) ready() metav1.Condition {
	if s.accepted().Status != metav1.ConditionTrue {
		return condition(placementv1alpha1.ConditionReady, metav1.ConditionFalse, placementv1alpha1.ReasonNotAccepted, "the policy is not accepted: see the condition Accepted")
	}
	missing := "without effect, because the controller lacks a flag: " + strings.Join(s.missing, ", ")
	if s.idle {
		return condition(placementv1alpha1.ConditionReady, metav1.ConditionFalse, placementv1alpha1.ReasonNotEnabled, missing)
	}
	before, _ := s.split(func(rival) bool { return true })
	var parts []string
	if len(before) > 0 {
		parts = append(parts, "policies that come before this one govern some of the selected pods: "+s.list(before))
	}
	if s.bySelf > 0 {
		parts = append(parts, number(s.bySelf)+" with annotations or constraints of their own, which come before a policy whose mode is Default")
	}
	status, reason, message := metav1.ConditionTrue, placementv1alpha1.ReasonInForce, "nothing comes before this policy for any of the selected pods"
	switch {
	case s.selected > 0 && s.inForce == 0:
		status, reason, message = metav1.ConditionFalse, placementv1alpha1.ReasonOverruled, strings.Join(parts, "; ")
	case len(parts) > 0:
		message = "in force for some of the selected pods: " + strings.Join(parts, "; ")
	}
	if len(s.missing) > 0 {
		message += "; " + missing
	}
	return condition(placementv1alpha1.ConditionReady, status, reason, message)
}

// split divides some of the rivals into those that come before this policy and those after.
func (s *policyState) split(which func(rival) bool) (before, after []rival) {
	for _, r := range s.rivals {
		if !which(r) {
			continue
		}
		if r.policy.Compare(s.policy) < 0 {
			before = append(before, r)
		} else {
			after = append(after, r)
		}
	}
	return before, after
}

// list names rivals and how many pods they share with this policy, and their kind if it is the other one.
func (s *policyState) list(rivals []rival) string {
	var names []string
	for _, r := range rivals[:min(len(rivals), maxNamed)] {
		name := strconv.Quote(r.policy.Name)
		if r.policy.Cluster() != s.policy.Cluster() {
			name = r.policy.String()
		}
		names = append(names, fmt.Sprintf("%s (%s)", name, number(r.pods)))
	}
	if more := len(rivals) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func number(pods int32) string {
	if pods == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", pods)
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
