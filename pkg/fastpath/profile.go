// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

// doubters are those who remember what fits on a node.
type doubters []Hinter

// noting is a profile that tells all doubters of nominations: a pod nominated for a
// node takes room there although the node has not changed.
type noting struct {
	framework.Framework
	doubters doubters
}

// RunPostFilterPlugins notes the node that preemption clears.
func (p *noting) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	result, status := p.Framework.RunPostFilterPlugins(ctx, state, pod, statuses)
	if result != nil {
		p.doubters.nominated(result.NominatingInfo)
	}
	return result, status
}

// RunPodGroupPostFilterPlugins notes the nodes that preemption clears for a group.
func (p *noting) RunPodGroupPostFilterPlugins(ctx context.Context, state *framework.CycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	result, status := p.Framework.RunPodGroupPostFilterPlugins(ctx, state, group, schedule)
	if result != nil {
		for _, info := range result.NominatingInfos {
			p.doubters.nominated(info)
		}
	}
	return result, status
}

func (d doubters) nominated(info *fwk.NominatingInfo) {
	if info == nil || info.NominatedNodeName == "" {
		return
	}
	for _, h := range d {
		h.Doubt(info.NominatedNodeName)
	}
}

// hinted is a profile whose hints are a Hinter's, for the pods that it places. The
// framework's own, for pods that have a signature, are passed on for all others.
type hinted struct {
	framework.Framework
	hinter Hinter
	// far are the filters that may look further than at one node.
	far []string
}

func newHinted(f framework.Framework, h Hinter) *hinted {
	return &hinted{Framework: f, hinter: h, far: farsighted(f)}
}

// Parallelizer returns the profile's own, but that a single piece of work is done on the
// spot: the one node that is proposed is looked at in a goroutine otherwise, to wait for
// which took a seventh of all the time in which pods were decided, behind those that bind.
func (p *hinted) Parallelizer() fwk.Parallelizer {
	return onTheSpot{p.Framework.Parallelizer()}
}

type onTheSpot struct{ fwk.Parallelizer }

// Until does the work, or has it done.
func (p onTheSpot) Until(ctx context.Context, pieces int, do workqueue.DoWorkPieceFunc, operation string) {
	if pieces != 1 {
		p.Parallelizer.Until(ctx, pieces, do, operation)
		return
	}
	if ctx.Err() == nil {
		do(0)
	}
}

// confinedKey marks a cycle in which a PreFilter plugin named the nodes to look at.
const confinedKey fwk.StateKey = "Espalier/Confined"

type confined struct{}

// Clone returns the mark, which says all by being there.
func (c confined) Clone() fwk.StateData { return c }

// RunPreFilterPlugins marks the cycles of pods that are confined to some of the
// nodes, which is not told to who is asked for a hint.
func (p *hinted) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	result, status, plugins := p.Framework.RunPreFilterPlugins(ctx, state, pod)
	if !result.AllNodes() {
		state.Write(confinedKey, confined{})
	}
	return result, status, plugins
}

// GetNodeHint returns the node that the Hinter proposes, on which the filters have
// been asked in this cycle, or "" for the full path.
func (p *hinted) GetNodeHint(ctx context.Context, pod *corev1.Pod, signature fwk.PodSignature, state fwk.CycleState, cycle int64) string {
	start := time.Now()
	node, outcome := p.propose(ctx, state, pod)
	note(p.ProfileName(), outcome)
	if node == "" {
		return p.Framework.GetNodeHint(ctx, pod, signature, state, cycle)
	}
	schedulermetrics.GetNodeHintDuration.WithLabelValues("hint", p.ProfileName()).Observe(schedulermetrics.SinceInSeconds(start))
	klog.FromContext(ctx).V(5).Info("Proposed a node", "pod", klog.KObj(pod), "node", node)
	return node
}

func (p *hinted) propose(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (node, outcome string) {
	if outcome := p.fullPath(state, pod); outcome != "" {
		return "", outcome
	}
	nodes := p.SnapshotSharedLister().NodeInfos()
	node, err := p.hinter.Hint(ctx, state, pod, lasting(state, p.far), func(name string) (bool, error) {
		info, err := nodes.Get(name)
		if err != nil {
			return false, fmt.Errorf("asking the filters about node %q: %w", name, err)
		}
		status := p.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
		if !status.IsSuccess() && !status.IsRejected() {
			return false, status.AsError()
		}
		return status.IsSuccess(), nil
	})
	switch {
	case err != nil:
		// The full path comes upon the same, and reports it.
		klog.FromContext(ctx).V(4).Info("No node is proposed", "pod", klog.KObj(pod), "err", err)
		return "", outcomeError
	case node == "":
		return "", outcomeNone
	}
	return node, outcomeProposed
}

// fullPath says why a pod is not to have a hint, "" if it may.
func (p *hinted) fullPath(state fwk.CycleState, pod *corev1.Pod) (outcome string) {
	switch {
	case !p.hinter.Places(pod):
		return outcomePreassigned
	case pod.Status.NominatedNodeName != "" || pod.Spec.NodeName != "":
		return outcomeNominated
	case state.IsPodGroupSchedulingCycle():
		return outcomeGroup
	case clusterview.Prefers(pod):
		return outcomePreferences
	}
	if _, err := state.Read(confinedKey); err == nil {
		return outcomeConfined
	}
	return ""
}

// StoreScheduleResults notes whether a proposed node was taken. The framework is told of a
// pod that had no hint, because what it remembers for pods with a signature does not
// foresee that others come in between.
func (p *hinted) StoreScheduleResults(ctx context.Context, signature fwk.PodSignature, hint, chosen string, others framework.SortedScoredNodes, cycle int64) {
	if signature == nil && hint != "" {
		outcome := outcomeUsed
		if hint != chosen {
			outcome = outcomeUnused
		}
		note(p.ProfileName(), outcome)
		hint = ""
	}
	p.Framework.StoreScheduleResults(ctx, signature, hint, chosen, others, cycle)
}
