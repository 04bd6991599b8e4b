// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/governing"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// byWorkload is the index by which the pods of a workload are found in the cache.
const byWorkload = "workload"

// Limits knows the domain limits of pods: those of their annotation, and those of their policy. Those that a profile has for pods that say
// nothing are the scheduler's alone.
type Limits struct {
	// Cache has nodes, and pods that Index has indexed.
	Cache client.Reader
	// Schedulers are those whose pods have limits, by schedulerName. Others do not keep them, and would choose the same node again.
	Schedulers []string

	mu    sync.Mutex // guards what follows
	reads governing.Reader
	// policies are nil where they are not known, or have changed since they were read.
	policies *governing.Policies
	watched  bool
}

// identifier tells which pods are of one revision, as far as the pods say so themselves: no right to read ReplicaSets is asked for. Pods of
// several owners of one workload may be of one Deployment, and are then of several revisions; so they do not count for each other.
var identifier = clusterview.NewIdentifier(appslisters.NewReplicaSetLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})))

// Index has a cache find pods by their workload.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, byWorkload, func(o client.Object) []string {
		return []string{identifier.Identify(o.(*corev1.Pod)).Workload.String()}
	})
	if err != nil {
		return fmt.Errorf("indexing pods by their workload: %w", err)
	}
	return nil
}

// policiesChanged has the policies be read anew. Before it is called for the first time they are not read at all: there may be no such kinds.
func (l *Limits) policiesChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policies, l.watched = nil, true
}

// governing returns the policy of a pod, nil if there is none.
func (l *Limits) governing(ctx context.Context, pod *corev1.Pod) (*clusterview.Policy, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.watched {
		return nil, nil //nolint:nilnil // there are no policies, which is no error
	}
	if l.policies == nil {
		policies, err := l.reads.Read(ctx, l.Cache)
		if err != nil {
			return nil, err
		}
		l.policies = policies
	}
	return l.policies.Of(pod), nil
}

// revision are the pods that the limits of a pod are about.
type revision struct {
	id     clusterview.Identity
	limits []limit.Limit
	cache  client.Reader
}

// limited are the limits of one pod that is to be bound.
type limited struct {
	revision
	uid types.UID
	// workload is the key under which pods of one workload are asked about one at a time.
	workload string
}

// of returns the limits of a pod, nil for none, and where they cannot be read: the scheduler has said so, and placed the pod all the same or not
// at all.
func (l *Limits) of(ctx context.Context, pod *corev1.Pod) *limited {
	if !slices.Contains(l.Schedulers, pod.Spec.SchedulerName) {
		return nil
	}
	governs, err := l.governing(ctx, pod)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The limits that policies have for a pod are not known", "pod", klog.KObj(pod))
		return nil
	}
	if clusterview.Daemon(pod) {
		governs = nil // the plugin DomainLimits holds it to its own word alone, too
	}
	limits, err := clusterview.Limits(pod, governs, nil)
	if err != nil || len(limits) == 0 {
		return nil // see above
	}
	id := identifier.Identify(pod)
	return &limited{revision: revision{id, limits, l.Cache}, uid: pod.UID, workload: id.Workload.String()}
}

// refuses returns why a node is not for the pod: a domain of the node has as many pods of the revision as it may. No limits refuse nothing.
func (l *limited) refuses(ctx context.Context, ledger *Ledger, node string) []string {
	if l == nil || !ledger.counts.full(ctx, l.uid, l.revision, node) {
		return nil
	}
	return []string{fmt.Sprintf("its domain limits %s allow no more pods of the revision there", limit.Format(l.limits))}
}

// values are those of a node at the limits.
func (r *revision) values(ctx context.Context, name string) ([]placement.Value, bool) {
	var node corev1.Node
	if err := r.cache.Get(ctx, client.ObjectKey{Name: name}, &node, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false
	}
	return clusterview.AppendDomains(nil, &node, r.limits), true
}

// alike reports whether a pod of the workload is certainly of the same revision.
func (r *revision) alike(of clusterview.Identity) bool {
	return r.id.SameRevision(of) && (r.id.Owner == of.Owner || !r.id.Provisional && !of.Provisional)
}
