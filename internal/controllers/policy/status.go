// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// policyState is how one policy stands among the pods and the other policies.
type policyState struct {
	policy *clusterview.Policy
	// beyond: there are too many before it in the namespace, or in the cluster, so that it has no say.
	beyond bool
	// selected and governed are numbers of pods. bySelf are those for which this policy is the first, but whose own annotations or
	// constraints come before a part of it.
	selected, governed, bySelf int32
	// inForce is how many are placed by what it says, in whole or in part, if they are placed now.
	inForce int32
	// missing is what it says that has no effect, because the controller lacks a flag; idle says that it says nothing else.
	missing []string
	idle    bool
	// rivals are the other policies that select some of the same pods, in the order
	// of Policy.Compare.
	rivals []rival
}

// rival is another policy that selects some of the same pods.
type rival struct {
	policy *clusterview.Policy
	pods   int32
}

// compute returns how policies stand among pods, in the order in which they are given. Namespaces has the labels of those in which
// there are pods; without policies of the cluster none are needed. Pods are those that count, see counts.
func compute(policies []*clusterview.Policy, namespaces map[string]labels.Set, pods []corev1.Pod) []*policyState {
	states := make([]*policyState, len(policies))
	of := make(map[*clusterview.Policy]*policyState, len(policies))
	byNamespace := make(map[string][]*clusterview.Policy) // "" has those of the cluster
	for i, p := range policies {
		states[i] = &policyState{policy: p}
		of[p] = states[i]
		byNamespace[p.Namespace] = append(byNamespace[p.Namespace], p)
	}
	for _, list := range byNamespace {
		slices.SortFunc(list, (*clusterview.Policy).Compare)
		for i, p := range list {
			of[p].beyond = i >= clusterview.MaxPolicies
		}
	}
	effective := make(map[string][]*policyState)
	for i := range pods {
		namespace := pods[i].Namespace
		ordered, ok := effective[namespace]
		if !ok {
			for _, p := range clusterview.Effective(byNamespace[""], byNamespace[namespace], namespaces[namespace]) {
				ordered = append(ordered, of[p])
			}
			effective[namespace] = ordered
		}
		count(ordered, &pods[i])
	}
	for _, s := range states {
		slices.SortFunc(s.rivals, func(a, b rival) int { return a.policy.Compare(b.policy) })
	}
	return states
}

// count counts one pod for the policies, which are in the order of Policy.Compare.
func count(ordered []*policyState, pod *corev1.Pod) {
	var selecting []*policyState
	for _, s := range ordered {
		if !s.policy.Selects(pod) {
			continue
		}
		s.selected++
		if s.policy.Places() {
			selecting = append(selecting, s)
		}
	}
	for i, s := range selecting {
		s.govern(pod, i == 0)
		for j, other := range selecting {
			if i != j {
				s.meet(other.policy)
			}
		}
	}
}

// govern counts a pod, if the policy governs it. First is the policy that comes before all others that select the pod. What the
// pod says itself comes before what a policy that does not override says of the same thing, and leaves it the rest.
//
// By whose levels a pod was placed the scheduler has written into it: policies may have come, gone and changed since.
func (s *policyState) govern(pod *corev1.Pod, first bool) {
	_, limits := pod.Annotations[clusterview.DomainLimitsAnnotation]
	limits = limits && !s.policy.Overrides()
	placement := clusterview.AsksForLevels(pod) && !s.policy.Overrides()
	if first && (s.policy.SaysLevels() && placement || s.policy.SaysLimits() && limits) {
		s.bySelf++
	}
	byLevels := first && s.policy.SaysLevels() && !placement
	byRest := first && (s.policy.SaysLimits() && !limits || s.policy.SaysMore())
	if byLevels || byRest {
		s.inForce++
	}
	if placedBy := pod.Annotations[clusterview.PlacedByAnnotation]; placedBy != "" && s.policy.SaysLevels() {
		byLevels = s.policy.Placed(placedBy)
		byRest = byRest && !clusterview.ByPolicy(placedBy)
	}
	if byLevels || byRest {
		s.governed++
	}
}

func (s *policyState) meet(other *clusterview.Policy) {
	i := slices.IndexFunc(s.rivals, func(r rival) bool { return r.policy == other })
	if i < 0 {
		i = len(s.rivals)
		s.rivals = append(s.rivals, rival{policy: other})
	}
	s.rivals[i].pods++
}

// status is the state as the policy's status, which was another one. A condition that changes does so now.
func (s *policyState) status(was placementv1alpha1.PlacementPolicyStatus, now metav1.Time) placementv1alpha1.PlacementPolicyStatus {
	out := *was.DeepCopy()
	out.ObservedGeneration = s.policy.Generation
	out.SelectedPods, out.GovernedPods = &s.selected, &s.governed
	s.setConditions(&out.Conditions, now)
	return out
}

// counts reports whether a pod is one of those that a status speaks of: one that
// the named schedulers place, and that is there to stay. A pod whose node its
// controller chooses is none of them: no policy has a say in that.
func counts(pod *corev1.Pod, schedulers []string) bool {
	return slices.Contains(schedulers, pod.Spec.SchedulerName) && !clusterview.Daemon(pod) && pod.DeletionTimestamp == nil &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
