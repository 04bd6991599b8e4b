// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// hintingFramework is a profile whose hints are a Hinter's, for the pods that it places. The
// framework's own, for pods that have a signature, are passed on for all others.
type hintingFramework struct {
	framework.Framework
	hinter Hinter
	// far are the filters that may look further than at one node.
	far []string
	// refuses: pods may be refused at once, see foreseeable.
	refuses bool
}

func newHintingFramework(f framework.Framework, h Hinter, local []string) *hintingFramework {
	return &hintingFramework{Framework: f, hinter: h, far: clusterScoped(f, local), refuses: foreseeable(f.ListPlugins().PostFilter.Enabled)}
}

// foreseeable reports that what PostFilter plugins say to a pod without victims is always the
// same: that of preemption, and of resource claims, of which a pod whose answers last has none.
func foreseeable(plugins []config.Plugin) bool {
	return !slices.ContainsFunc(plugins, func(p config.Plugin) bool {
		return p.Name != names.DefaultPreemption && p.Name != names.DynamicResources
	})
}

// Parallelizer returns the profile's own, but that a single piece of work is done on the
// spot: the one node that is proposed is looked at in a goroutine otherwise, to wait for
// which took a seventh of all the time in which pods were decided, behind those that bind.
func (p *hintingFramework) Parallelizer() fwk.Parallelizer {
	return inlineParallelizer{p.Framework.Parallelizer()}
}

type inlineParallelizer struct{ fwk.Parallelizer }

// Until does the work, or has it done.
func (p inlineParallelizer) Until(ctx context.Context, pieces int, do workqueue.DoWorkPieceFunc, operation string) {
	if pieces != 1 {
		p.Parallelizer.Until(ctx, pieces, do, operation)
		return
	}
	if ctx.Err() == nil {
		do(0)
	}
}

// proposalKey is where a cycle keeps what came of asking the Hinter.
const proposalKey fwk.StateKey = "Espalier/Proposal"

// proposal is what came of asking the Hinter.
type proposal struct {
	node    string
	outcome string
	refusal *clusterview.Refusal
	took    time.Duration
}

// Clone returns the proposal, which nobody alters.
func (p *proposal) Clone() fwk.StateData { return p }

func proposed(state fwk.CycleState) *proposal {
	if data, err := state.Read(proposalKey); err == nil {
		if p, ok := data.(*proposal); ok {
			return p
		}
	}
	return &proposal{}
}

// RunPreFilterPlugins asks the Hinter, once the plugins have run. Where it knows that the pod
// fits on no node, and what becomes of preemption, the pod is refused at once, in the words
// in which the full path would: to filter it on all nodes again would bring nothing else.
func (p *hintingFramework) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	result, status, plugins := p.Framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return result, status, plugins
	}
	start := time.Now()
	is := p.propose(ctx, state, pod, !result.AllNodes())
	is.took = time.Since(start)
	state.Write(proposalKey, is)
	if r := is.refusal; r != nil && p.refuses && (r.Preemption != nil || !p.HasPostFilterPlugins()) {
		note(p.ProfileName(), outcomeRefused)
		return nil, fwk.NewStatus(fwk.Unschedulable, r.Message), plugins.Union(sets.New(r.Plugins...))
	}
	return result, status, plugins
}

// RunPostFilterPlugins says of a pod that was refused at once what is known of preemption,
// and has the Hinter learn it otherwise.
func (p *hintingFramework) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	refusal := proposed(state).refusal
	if refusal != nil && p.refuses && refusal.Preemption != nil {
		return nil, refusal.Preemption
	}
	result, status := p.Framework.RunPostFilterPlugins(ctx, state, pod, statuses)
	if refusal != nil && status.IsRejected() {
		refusal.Learn(status)
	}
	return result, status
}

// GetNodeHint returns the node that the Hinter has proposed, on which the filters have
// been asked in this cycle, or "" for the full path.
func (p *hintingFramework) GetNodeHint(ctx context.Context, pod *corev1.Pod, signature fwk.PodSignature, state fwk.CycleState, cycle int64) string {
	is := proposed(state)
	if is.outcome != "" {
		note(p.ProfileName(), is.outcome)
	}
	if is.node == "" {
		return p.Framework.GetNodeHint(ctx, pod, signature, state, cycle)
	}
	schedulermetrics.GetNodeHintDuration.WithLabelValues("hint", p.ProfileName()).Observe(is.took.Seconds())
	klog.FromContext(ctx).V(5).Info("Proposed a node", "pod", klog.KObj(pod), "node", is.node)
	return is.node
}

func (p *hintingFramework) propose(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, confined bool) *proposal {
	if outcome := p.fullPath(state, pod, confined); outcome != "" {
		return &proposal{outcome: outcome}
	}
	nodes := p.SnapshotSharedLister().NodeInfos()
	node, refusal, err := p.hinter.Hint(ctx, state, pod, !decidedAnew(state) && lasting(state, pod, p.far), func(name string) *fwk.Status {
		info, err := nodes.Get(name)
		if err != nil {
			return fwk.AsStatus(fmt.Errorf("asking the filters about node %q: %w", name, err))
		}
		return p.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
	})
	switch {
	case errors.Is(err, clusterview.ErrPrefers):
		return &proposal{outcome: outcomePreferences}
	case err != nil:
		// The full path comes upon the same, and reports it.
		klog.FromContext(ctx).V(4).Info("No node is proposed", "pod", klog.KObj(pod), "err", err)
		return &proposal{outcome: outcomeError}
	case node == "":
		return &proposal{outcome: outcomeNone, refusal: refusal}
	}
	return &proposal{node: node, outcome: outcomeProposed}
}

// fullPath says why the Hinter is not asked about a pod, "" if it is. The pod is confined if a
// PreFilter plugin has left it some of the nodes.
func (p *hintingFramework) fullPath(state fwk.CycleState, pod *corev1.Pod, confined bool) (outcome string) {
	switch {
	case !p.hinter.Places(pod):
		return outcomePreassigned
	case pod.Status.NominatedNodeName != "" || pod.Spec.NodeName != "":
		return outcomeNominated
	case state.IsPodGroupSchedulingCycle():
		return outcomeGroup
	case confined:
		return outcomeConfined
	}
	return ""
}

// StoreScheduleResults notes whether a proposed node was taken. The framework is told of a
// pod that had no hint, because what it remembers for pods with a signature does not
// foresee that others come in between.
func (p *hintingFramework) StoreScheduleResults(ctx context.Context, signature fwk.PodSignature, hint, chosen string, others framework.SortedScoredNodes, cycle int64) {
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
