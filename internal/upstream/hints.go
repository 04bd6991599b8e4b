// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/imagelocality"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
)

// Hinter is a plugin that can say which node a pod is to go to.
type Hinter interface {
	fwk.Plugin
	// Hints reports whether it is to be asked at all.
	Hints() bool
	// Places reports whether it decides about a pod.
	Places(pod *corev1.Pod) bool
	// Hint returns the best node that fits, "" if there is none; then, if it is known that
	// the pod fits nowhere and that preemption cannot help, the refusal. ask asks the pod's
	// filters; lasting says that their answers hold for pods with the same needs until
	// the node changes. ask may be called by many at once. Hint is called after PreFilter. Its error is clusterview.ErrPrefers if scores
	// decide between the nodes that are equals to the Hinter.
	Hint(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, lasting bool, ask func(node string) *fwk.Status) (string, *clusterview.Refusal, error)
	// Order says how good some nodes are for a pod, if others make way for it there: a higher number is better. Pods that
	// are nominated for a node count there.
	Order(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []string) (map[string]int64, error)
	// BreakTies is given ImageLocality, which scores the nodes that nothing but their names tells apart, before the first cycle.
	BreakTies(by fwk.ScorePlugin)
	// SetScoring says what of the profile's scoring decides about pods that prefer nothing themselves, before the first cycle.
	SetScoring(by clusterview.Scoring)
	// HashTies has those of them that nothing else tells apart come in an order of the replica's own, before the first cycle.
	HashTies(replica string)
	// Follow is given what knows which nodes of a snapshot have changed, before the first cycle.
	Follow(changes podcount.Changes)
}

// wrap wraps the profiles of a scheduler that is not running yet, and tells their Hinters who
// knows which nodes have changed. Their preemption asks the Hinter too, with hints or without. It returns, a sentence each, why profiles that place pods
// by a Hinter have no hints although their arguments do not switch them off.
//
// Beside those of kube-scheduler, local names the filters that look at nothing but the pod and
// one node. The profiles are those that are configured.
func wrap(logger klog.Logger, profiles profile.Map, configured []config.KubeSchedulerProfile, changes podcount.Changes, local []string) (without []string) {
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		f := profiles[name]
		h := hinterOf(f)
		if h == nil {
			continue
		}
		h.Follow(changes)
		breakTies(f, h)
		scoring := scoringOf(f, configured)
		h.SetScoring(scoring)
		f = preemptByTree(f, h)
		profiles[name] = f
		if !h.Hints() {
			logger.Info("Node hints are switched off by the arguments", "profile", name, "plugin", h.Name())
			continue
		}
		if reason := unfit(f, h, scoring); reason != "" {
			without = append(without, fmt.Sprintf("profile %q: fast path disabled, every pod is filtered and scored on all nodes: %s", name, reason))
			continue
		}
		begin(name)
		profiles[name] = newHintingFramework(f, h, local)
	}
	return without
}

// hinterOf finds a profile's Hinter among its plugins, as far as a framework shows them.
func hinterOf(f framework.Framework) Hinter {
	for _, plugin := range f.EnqueueExtensions() {
		if h, ok := plugin.(Hinter); ok {
			return h
		}
	}
	return nil
}

// unfit says why the node that a Hinter proposes may not be the one that scoring
// would choose, or could not be proposed; "" if there is no reason.
func unfit(f framework.Framework, h Hinter, scoring clusterview.Scoring) string {
	if !utilfeature.DefaultFeatureGate.Enabled(features.OpportunisticBatching) {
		if _, known := utilfeature.DefaultMutableFeatureGate.GetAll()[features.OpportunisticBatching]; !known {
			return fmt.Sprintf("the scheduler runs as one of an older Kubernetes, which does not have the feature gate %s; upgrade the API server and restart the scheduler, or remove --emulated-version", features.OpportunisticBatching)
		}
		return fmt.Sprintf("the feature gate %s is off; remove it from --feature-gates", features.OpportunisticBatching)
	}
	if len(f.Extenders()) > 0 {
		return "the configuration has extenders, which a hint would pass by"
	}
	if scoring.PrefersNodes {
		return "its addedAffinity prefers some nodes, so that scores decide between those that are equals to the tree"
	}
	ours, others := int64(0), int64(0)
	for _, p := range f.ListPlugins().Score.Enabled {
		if p.Name == h.Name() {
			ours = int64(p.Weight)
		} else {
			others += int64(p.Weight)
		}
	}
	if ours <= others*fwk.MaxScore {
		return fmt.Sprintf("its other scorers outvote %s, whose weight is %d; give it a weight above %d", h.Name(), ours, others*fwk.MaxScore)
	}
	return ""
}

// breakTies has a Hinter look where the images of a pod are, if its profile does. Of all scorers this one alone depends on nothing but the
// pod and the node, so that its score among a few nodes is the one that it would have among all.
func breakTies(f framework.Framework, h Hinter) {
	if !scores(f, imagelocality.Name) {
		return
	}
	pl, err := imagelocality.New(context.Background(), nil, f)
	if scorer, ok := pl.(fwk.ScorePlugin); ok && err == nil {
		h.BreakTies(scorer)
	}
}
