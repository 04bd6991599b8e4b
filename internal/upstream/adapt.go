// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
)

// Options are what a scheduler is adapted by.
type Options struct {
	// Profiles are those that it is configured with.
	Profiles []Profile
	// NodeLocal names the filters that look at nothing but the pod and one node, beside those of kube-scheduler.
	NodeLocal []string

	// Client asks what became of a binding that failed: see NewClient. A scheduler that binds nothing never asks.
	Client kubernetes.Interface
	// Unsent is the error of a binding that was never sent, of which nothing is asked. Nil is none.
	Unsent error
	// Candidates are, by profile, to how many nodes a pod is bound at most while nodes refuse it: to one where nothing is said.
	Candidates map[string]int
	// Announced reports, by profile, whether a bound pod gets the event Scheduled: all do where nothing is said.
	Announced map[string]func(*corev1.Pod) bool

	// Withheld says why a pod must not be decided now. Nil is that all may.
	Withheld func(*corev1.Pod) error

	// NoSampling has no profile decide by a sample of the nodes. It is for a simulator, of which an answer is wanted for each node, and the same
	// answer each time: a sample is drawn at random. Beside share, which only one of several replicas has, it is the only wrapper that is left out.
	NoSampling bool
	// Share is set for one of several schedulers that are active at once.
	Share *Sharing
}

// Sharing is what one of several schedulers that are active at once knows of its part.
type Sharing struct {
	// Owner says which pods are its own.
	Owner Ownership
	// Plugin is the one that keeps other pods out of what is tried. All profiles must have it.
	Plugin string
	// Single names the plugins that want one scheduler to place all pods. No profile may have one.
	Single []string
	// Pods are all pods.
	Pods corelisters.PodLister
}

// Adapt changes a scheduler that is not running yet in all places where this package changes one. Whoever runs a scheduler of ours, or asks one, does
// it by this: what ships is what is tested as a whole, and what is explained.
//
// It returns, a sentence each, what profiles go without for a reason of their configuration.
//
// A wrapper is around those before it. Their order is held by TestOrder where it matters; where it does not, it is said here.
func Adapt(ctx context.Context, sched *Scheduler, o Options) (warnings []string, err error) {
	// Beneath wrap and sample, which ask the filters when PreFilter is through. With rebind, confirm and the others it has nothing in common.
	countAll(sched.Profiles)
	// Innermost, around one request: the pod is looked for on the node of that request. Around rebind it would be looked for on the node of the
	// cycle, and a pod that was put elsewhere without an answer would be taken for one that has no node.
	confirm(sched.Profiles, o.Client, o.Unsent)
	// Nothing else changes how a pod is decided as a whole: where this stands does not matter.
	sched.SchedulePod = withhold(sched.SchedulePod, o.Withheld)
	// Whether a pod waits for its condition before it is looked for or after does not matter.
	sched.FailureHandler = failAsync(ctx, sched.Profiles, sched.Extenders, sched.FailureHandler)
	// Whether a pod is put back before its condition is written or after does not matter. The queue and the cache are asked when it happens, in the
	// form that they have by then.
	recoverDiscarded(sched)
	// Whether others run before the wait of pace or after it does not matter: while it waits, they run.
	sched.NextEntity = yield(sched.NextEntity)
	// Around confirm and failAsync: a binding that is looked for, or that waits for the condition of its pod, is under way. There may be thousands when
	// the API server does not answer.
	sched.NextEntity = pace(sched.Profiles, sched.NextEntity)
	// Around pace: a pod is bound elsewhere while the scheduler decides none, and it decides none while it waits for bindings. The other way round
	// those that it waits for would wait for it.
	rebind(sched, o.Candidates)
	// Right after rebind, which knows the node of a pod that was bound elsewhere. It is a profile of that kind that this looks for.
	announce(sched.Profiles, o.Announced)

	// The queue, and then the cache. Nothing above asks either before the scheduler runs: where these two stand, and which is first, does not matter.
	sched.SchedulingQueue = narrow(ctx, sched.SchedulingQueue, sched.Profiles, o.Profiles)
	for _, f := range sched.Profiles {
		// Around narrow or within does not matter: it does not leave out the event by which pods are tried again. All profiles have one informer.
		if sched.SchedulingQueue, err = seeNamespaces(ctx, sched.SchedulingQueue, f.SharedInformerFactory().Core().V1().Namespaces()); err != nil {
			return nil, err
		}
		break
	}
	bare := sched.Cache
	cache, changes := track(bare)
	sched.Cache = cache
	if err := checkTracked(sched, bare); err != nil {
		return nil, err
	}

	// After track, whose journal it needs. Around rebind: the filters that a Hinter asks must refuse the nodes that have refused the pod, or it proposes
	// one of them again, and the pod takes the full path.
	warnings = wrap(klog.FromContext(ctx), sched.Profiles, o.Profiles, changes, o.NodeLocal)
	// Around wrap: no sample is drawn for a pod that has a proposal, and none keeps the Hinter from proposing the best of all nodes. Around rebind as
	// well: a sample of nodes that have refused the pod would be none.
	if !o.NoSampling {
		warnings = append(warnings, sample(sched.Profiles)...)
	}

	// Around all others: what is another scheduler's goes through none of them. Within confirm, the API server would be asked about a binding that was
	// never sent; within rebind, a pod could become another's between two nodes; within wrap, it would be learned from another's pod that nobody
	// makes way. Beside sample it does not matter.
	if s := o.Share; s != nil {
		err = share(ctx, sched, s.Pods, s.Plugin, s.Single, s.Owner)
	}
	return warnings, err
}
