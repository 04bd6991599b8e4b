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
	// levels and limits are whether the policy says anything of them, which an annotation
	// of the pod's own comes before. Of faults no annotation says anything.
	levels, limits bool
	// selected and governed are numbers of pods; annotated is how many of those that
	// no other policy takes have an annotation that comes before something it says.
	selected, governed, annotated int32
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
	for i := range pods {
		count(ordered, &pods[i])
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
		if i == 0 {
			s.govern(pod)
		}
		for j, other := range selecting {
			if i != j {
				s.meet(other.policy)
			}
		}
	}
}

// govern counts a pod that no other policy takes. An annotation comes before what
// the policy says of the same thing, and leaves it the rest.
func (s *policyState) govern(pod *corev1.Pod) {
	_, placement := pod.Annotations[clusterview.PlacementAnnotation]
	_, limits := pod.Annotations[clusterview.DomainLimitsAnnotation]
	if (s.levels && placement) || (s.limits && limits) {
		s.annotated++
	}
	if (s.levels && !placement) || (s.limits && !limits) || s.policy.Faults != nil {
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
	out.SelectedPods, out.GovernedPods = s.selected, s.governed
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
