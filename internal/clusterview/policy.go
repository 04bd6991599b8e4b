// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// Policy is a PlacementPolicy or a ClusterPlacementPolicy, read. It is never modified: two pointers that are
// equal say the same.
type Policy struct {
	// Namespace is "" for a ClusterPlacementPolicy.
	Namespace, Name string
	// Generation is that of the spec that was read.
	Generation int64
	// Faults is when a node counts as faulty, nil where the policy says nothing of it.
	Faults *placementv1alpha1.Faults
	// ScaleDown is what is left when some pods are removed, "" where the policy says nothing of it.
	ScaleDown placementv1alpha1.ScaleDown
	// Disconnect is what becomes of pods on nodes that do not answer, nil where the policy says nothing of it.
	Disconnect *placementv1alpha1.Disconnect
	// Moves is for which reasons running pods are replaced, nil where the policy says nothing of it.
	Moves *placementv1alpha1.Moves

	uid      types.UID
	created  time.Time
	priority int32
	override bool
	selector labels.Selector
	// namespaces selects those that a ClusterPlacementPolicy is for. It is nil for a PlacementPolicy, which is for its own.
	namespaces labels.Selector
	levels     []level.Level
	limits     []limit.Limit
	// levelsErr and limitsErr say what cannot be read. They are apart because a
	// pod may have an annotation for one and need the policy for the other.
	levelsErr, limitsErr error
}

// strategies and nodesWithoutKey map what a policy says to what the algorithms say. An
// API server fills in the defaults; "" is what it has not seen.
var (
	strategies = map[placementv1alpha1.Strategy]level.Strategy{
		"":                               level.Spread,
		placementv1alpha1.StrategySpread: level.Spread,
		placementv1alpha1.StrategyPack:   level.Pack,
	}
	nodesWithoutKey = map[placementv1alpha1.NodesWithoutKey]level.NodesWithoutKey{
		"": level.LastResort,
		placementv1alpha1.NodesWithoutKeyLastResort: level.LastResort,
		placementv1alpha1.NodesWithoutKeyOwnDomain:  level.OwnDomain,
		placementv1alpha1.NodesWithoutKeyExclude:    level.Exclude,
	}
)

// ReadPolicy reads a policy. What the API server should have refused, and an older
// definition may have let pass, is kept as the error of the part it is in: pods
// that need the part are refused. A selector that cannot be read selects every
// pod of the namespace, so that none is placed as if the policy were not there.
func ReadPolicy(in *placementv1alpha1.PlacementPolicy) *Policy {
	p := &Policy{
		Namespace: in.Namespace, Name: in.Name, Generation: in.Generation,
		Faults: in.Spec.Faults, ScaleDown: in.Spec.ScaleDown, Disconnect: in.Spec.Disconnect, Moves: in.Spec.Moves,
		uid: in.UID, created: in.CreationTimestamp.Time,
		priority: in.Spec.Priority, override: in.Spec.Mode == placementv1alpha1.ModeOverride,
	}
	p.levels, p.levelsErr = policyLevels(in.Spec.Levels)
	p.limits, p.limitsErr = policyLimits(in.Spec.DomainLimits)
	var err error
	if p.selector, err = readSelector("spec.podSelector", &in.Spec.PodSelector); err != nil {
		p.selector = labels.Everything()
		p.levelsErr, p.limitsErr = err, err
		p.Disconnect = nil // it was meant for some of these pods
	}
	return p
}

// readSelector reads a selector. The error names its field.
func readSelector(field string, in *metav1.LabelSelector) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(in)
	if err != nil {
		// The API server takes labels of any length here, and quotes them all.
		return nil, fmt.Errorf("%s: %s: keys and values must be those of labels, with 63 characters at most, and operators In, NotIn, Exists or DoesNotExist",
			field, syntax.Cut(err.Error()))
	}
	return selector, nil
}

// undecodablePolicy is a policy of which only the selector could be decoded, if that: the pods that it selects are refused
// until it is mended.
func undecodablePolicy(in *placementv1alpha1.PlacementPolicy, err error) *Policy {
	return ReadPolicy(in).undecodable(err)
}

func (p *Policy) undecodable(err error) *Policy {
	p.levelsErr = fmt.Errorf("it cannot be decoded: %s: it was written for another version of its kind; apply the CRD of this release, and the policy anew", syntax.Cut(err.Error()))
	p.limitsErr = p.levelsErr
	return p
}

// policyLevels reads the levels of a policy. Where there is an error there are none.
func policyLevels(in []placementv1alpha1.Level) ([]level.Level, error) {
	levels := make([]level.Level, 0, len(in))
	for i := range in {
		l, err := policyLevel(&in[i])
		if err != nil {
			return nil, fmt.Errorf("spec.levels[%d].%w", i, err)
		}
		levels = append(levels, l)
	}
	if err := level.Validate(levels); err != nil {
		return nil, fmt.Errorf("spec.levels: %w", err)
	}
	return levels, nil
}

// policyLevel reads a level but for what level.Validate sees as well.
func policyLevel(in *placementv1alpha1.Level) (level.Level, error) {
	var out level.Level
	var ok bool
	var err error
	if out.Strategy, ok = strategies[in.Strategy]; !ok {
		return out, fmt.Errorf("strategy: unknown strategy %.100q: use Spread or Pack", in.Strategy)
	}
	if out.NodesWithoutKey, ok = nodesWithoutKey[in.NodesWithoutKey]; !ok {
		return out, fmt.Errorf("nodesWithoutKey: unknown value %.100q: use LastResort, OwnDomain or Exclude", in.NodesWithoutKey)
	}
	if out.Property, err = level.ParseKey(string(in.TopologyKey)); err != nil {
		return out, fmt.Errorf("topologyKey: %w", err)
	}
	if in.Share != "" && in.Share != placementv1alpha1.ShareAllocatable {
		return out, fmt.Errorf("share: unknown value %.100q: use Allocatable", in.Share)
	}
	out.Share = level.Share(in.Share)
	var listed []level.Weight
	for _, s := range in.Shares {
		listed = append(listed, level.Weight{Value: s.Value, Share: s.Share})
	}
	out.Weights = level.Weights(listed, in.UnlistedShare, in.NodesWithoutKeyShare)
	return out, nil
}

// policyLimits reads the limits of a policy. Where there is an error there are none.
func policyLimits(in []placementv1alpha1.DomainLimit) ([]limit.Limit, error) {
	limits := make([]limit.Limit, 0, len(in))
	for i, l := range in {
		property, err := level.ParseKey(string(l.TopologyKey))
		if err != nil {
			return nil, fmt.Errorf("spec.domainLimits[%d].topologyKey: %w", i, err)
		}
		limits = append(limits, limit.Limit{Property: property, Pods: l.MaxPods})
	}
	if err := limit.Validate(limits); err != nil {
		return nil, fmt.Errorf("spec.domainLimits: %w", err)
	}
	return limits, nil
}

// Levels returns the levels of the policy's pods, none where it says nothing of
// them. The error quotes what cannot be read and names the policy.
func (p *Policy) Levels() ([]level.Level, error) { return p.levels, p.named(p.levelsErr) }

// SaysLevels reports whether the policy says anything of levels, and SaysLimits of limits. One that cannot be read may.
func (p *Policy) SaysLevels() bool { return len(p.levels) > 0 || p.levelsErr != nil }

// SaysLimits is beside SaysLevels.
func (p *Policy) SaysLimits() bool { return len(p.limits) > 0 || p.limitsErr != nil }

// DomainLimits returns the limits of the policy's pods, none where it says nothing
// of them. The error quotes what cannot be read and names the policy.
func (p *Policy) DomainLimits() ([]limit.Limit, error) { return p.limits, p.named(p.limitsErr) }

// Err says what of the policy cannot be read, nil if all of it can.
func (p *Policy) Err() error { return cmp.Or(p.levelsErr, p.limitsErr) }

func (p *Policy) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p, err)
}

// String names the policy and its kind.
func (p *Policy) String() string {
	if p.Cluster() {
		return fmt.Sprintf("ClusterPlacementPolicy %q", p.Name)
	}
	return fmt.Sprintf("PlacementPolicy %q", p.Name)
}

// Cluster reports that the policy is a ClusterPlacementPolicy.
func (p *Policy) Cluster() bool { return p.namespaces != nil }

// Selects reports whether the policy is about a pod. For a ClusterPlacementPolicy, the pod must be of a namespace that
// it selects: see Effective.
func (p *Policy) Selects(pod *corev1.Pod) bool {
	return (p.Cluster() || pod.Namespace == p.Namespace) && p.selector.Matches(labels.Set(pod.Labels))
}

// Overrides reports that the policy comes before what its pods say themselves.
func (p *Policy) Overrides() bool { return p.override }

// Compare orders policies by who governs a pod that they all select: a ClusterPlacementPolicy that overrides; a
// PlacementPolicy that does; a PlacementPolicy that does not, and a ClusterPlacementPolicy last. Among these, that of the higher
// priority; the older one; and of two of the same age, which the API server knows to the second, the one
// whose name comes first.
func (p *Policy) Compare(q *Policy) int {
	return cmp.Or(cmp.Compare(p.rank(), q.rank()), cmp.Compare(q.priority, p.priority), p.created.Compare(q.created), cmp.Compare(p.Name, q.Name))
}

// rank is lower for what comes first by kind and mode. Who runs the cluster has the first word, and the last.
func (p *Policy) rank() int {
	switch {
	case p.override && p.Cluster():
		return 0
	case p.override:
		return 1
	case !p.Cluster():
		return 2
	}
	return 3
}

// Places reports whether the policy has a say in where pods go, or stay. One that has none, as
// a definition without our rules may let pass, must not keep another from having it.
func (p *Policy) Places() bool {
	return p.SaysLevels() || p.SaysLimits() || p.SaysMore()
}

// SaysMore reports whether the policy says anything that no pod says itself.
func (p *Policy) SaysMore() bool {
	return p.Faults != nil || p.ScaleDown != "" || p.Disconnect != nil || p.Moves != nil
}

// FaultRule returns the rule for the policy's pods, which is the given one where it says nothing.
// What the API server should have refused is taken for the nearest that it lets pass: no pod has
// to wait for it.
func (p *Policy) FaultRule(rule failure.Rule) failure.Rule {
	if p == nil || p.Faults == nil {
		return rule
	}
	if t := p.Faults.Threshold; t != nil {
		rule.Threshold = int(*t)
	}
	if s := p.Faults.WindowSeconds; s != nil {
		rule.Window = time.Duration(*s) * time.Second
	}
	return rule.Normal()
}

// Governing returns the policy that governs a pod: the first in order of Compare
// that selects it and has a say. It is nil if none does. The policies must be those of Effective for the pod's namespace.
func Governing(effective []*Policy, pod *corev1.Pod) *Policy {
	for _, p := range effective {
		if p.Places() && p.Selects(pod) {
			return p
		}
	}
	return nil
}

// Contested reports that another policy of the same kind than the one that governs a pod would if it
// were alone. That a policy of a namespace comes before a ClusterPlacementPolicy, or after it, is what the kinds are for.
func Contested(effective []*Policy, governing *Policy, pod *corev1.Pod) bool {
	return slices.ContainsFunc(effective, func(p *Policy) bool {
		return p.Cluster() == governing.Cluster() && p.Name != governing.Name && p.Places() && p.Selects(pod)
	})
}

// Same reports whether q is the policy p with the same spec. A policy that was
// deleted and made again is another one, whatever it says.
func (p *Policy) Same(q *Policy) bool {
	return p.uid == q.uid && p.Generation == q.Generation
}

// ReadFrom reports whether the policy is what an object says now.
func (p *Policy) ReadFrom(object metav1.Object) bool {
	return p.uid == object.GetUID() && p.Generation == object.GetGeneration()
}
