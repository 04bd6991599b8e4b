// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// policyState is how one policy stands among the pods and the other policies of its
// namespace.
type policyState struct {
	policy *clusterview.Policy
	// beyond: there are too many before it in the namespace, so that it has no say.
	beyond bool
	// levels and limits are whether the policy says anything of them, which an annotation
	// of the pod's own comes before. Of faults no annotation says anything.
	levels, limits bool
	// selected and governed are numbers of pods; bySelf is how many of those that
	// no other policy takes say something themselves that comes before something it says.
	selected, governed, bySelf int32
	// inForce is how many are placed by what it says, in whole or in part, if they are placed now.
	inForce int32
	// rivals are the other policies that select some of the same pods, in the order
	// of Policy.Compare.
	rivals []rival
}

// rival is another policy that selects some of the same pods.
type rival struct {
	policy *clusterview.Policy
	pods   int32
}

// compute returns the statuses of the policies of one namespace, in the order in
// which they are given. Pods are those that count, see counts. A condition that
// changes does so now.
func compute(policies []placementv1alpha1.PlacementPolicy, pods []corev1.Pod, now metav1.Time) []placementv1alpha1.PlacementPolicyStatus {
	states := make([]*policyState, len(policies))
	for i := range policies {
		spec := &policies[i].Spec
		states[i] = &policyState{
			policy: clusterview.ReadPolicy(&policies[i]),
			levels: len(spec.Levels) > 0, limits: len(spec.DomainLimits) > 0,
		}
	}
	ordered := slices.Clone(states)
	slices.SortFunc(ordered, func(a, b *policyState) int { return a.policy.Compare(b.policy) })
	for i, s := range ordered {
		s.beyond = i >= clusterview.MaxPolicies
	}
	for i := range pods {
		count(ordered[:min(len(ordered), clusterview.MaxPolicies)], &pods[i])
	}
	statuses := make([]placementv1alpha1.PlacementPolicyStatus, len(policies))
	for i, s := range states {
		slices.SortFunc(s.rivals, func(a, b rival) int { return a.policy.Compare(b.policy) })
		statuses[i] = s.status(&policies[i], now)
	}
	return statuses
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
	if first && (s.levels && placement || s.limits && limits) {
		s.bySelf++
	}
	byLevels := first && s.levels && !placement
	byRest := first && (s.limits && !limits || s.policy.Faults != nil)
	if byLevels || byRest {
		s.inForce++
	}
	if placedBy := pod.Annotations[clusterview.PlacedByAnnotation]; placedBy != "" && s.levels {
		by := clusterview.PlacingPolicy(placedBy)
		byLevels = by == s.policy.Name
		byRest = byRest && by == ""
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

// status is the state as the policy's status.
func (s *policyState) status(policy *placementv1alpha1.PlacementPolicy, now metav1.Time) placementv1alpha1.PlacementPolicyStatus {
	out := *policy.Status.DeepCopy()
	out.ObservedGeneration = policy.Generation
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
