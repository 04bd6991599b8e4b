// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/notices"
	"github.com/espalier-scheduler/espalier/internal/upstream/filters"
	"github.com/espalier-scheduler/espalier/pkg/placement/lifetime"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// asks is the value of the annotation of a pod that asks for a new lease.
const asks = "true"

// look is the cluster at one moment, and what may be done.
type look struct {
	*Controller
	now       time.Time
	nodes     []*corev1.Node // in order
	pods      []*corev1.Pod
	count     *move.Count
	histories map[string]move.History
	budget    *move.Budget
	// filters and claims are made for the first pod whose node does not live long enough.
	filters *filters.Cluster
	claims  *allocations.Claims
}

func (l *look) readNodes(ctx context.Context) error {
	var list corev1.NodeList
	if err := l.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range list.Items {
		l.nodes = append(l.nodes, &list.Items[i])
	}
	slices.SortFunc(l.nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// renew does what can be done for a pod, and reports whether it is to be moved.
func (l *look) renew(ctx context.Context, pod *corev1.Pod) (moved bool, err error) {
	lease, problem := leaseOf(pod)
	if problem != "" {
		l.say(pod, problem)
		return false, nil
	}
	at, known := slices.BinarySearchFunc(l.nodes, pod.Spec.NodeName, func(n *corev1.Node, name string) int { return strings.Compare(n.Name, name) })
	if !known || l.histories[string(pod.UID)].Active {
		return false, nil // it is about to go
	}
	end, problem := endOf(l.nodes[at])
	later, to := false, ""
	switch lifetime.Renew(end, l.now, lease, func() bool {
		if later = l.later(pod); later {
			return false // it is not asked which nodes take it: that is a look at all of them
		}
		to, err = l.elsewhere(ctx, pod, lease)
		return to != ""
	}) {
	case lifetime.Extended:
		return false, l.extend(ctx, pod, l.now.Add(lease))
	case lifetime.Moved:
		return l.move(ctx, pod)
	case lifetime.Kept:
		if err == nil && !later {
			l.lookup.Refuse(pod)
			l.say(pod, fmt.Sprintf("its node %s %s, and no other node takes it and lives for %s more", pod.Spec.NodeName, problem, lease))
		}
	}
	return false, err
}

// later reports that a pod is not to be moved now, wherever it may go.
func (l *look) later(pod *corev1.Pod) bool {
	return l.lookup.Rests(pod) || l.histories[string(pod.UID)].Waits(l.now) || l.budget.Spent() || l.count.Stale()
}

// leaseOf is the lease that a pod asks for, or else what is wrong with it.
func leaseOf(pod *corev1.Pod) (lease time.Duration, problem string) {
	if text := pod.Annotations[clusterview.RenewLeaseAnnotation]; text != asks {
		return 0, fmt.Sprintf("annotation %s: unknown value %q: use %s, or remove it", clusterview.RenewLeaseAnnotation, syntax.Cut(text), asks)
	}
	lease, err := clusterview.LeaseOf(pod, nil)
	if err != nil {
		return 0, err.Error()
	}
	if lease == 0 {
		return 0, fmt.Sprintf("it has none: write the annotation %s", clusterview.LeaseAnnotation)
	}
	return lease, ""
}

// endOf is when a node ends, in words too. One of which that cannot be read has ended.
func endOf(node *corev1.Node) (end time.Time, text string) {
	end, err := clusterview.EndOf(node)
	if err != nil {
		return time.Unix(0, 0), "has a malformed end: " + err.Error()
	}
	return end, "ends " + end.Format(time.RFC3339)
}

// elsewhere is a node that takes another pod like this one and lives for longer than a lease, "" if there is none.
func (l *look) elsewhere(ctx context.Context, pod *corev1.Pod, lease time.Duration) (string, error) {
	var candidates []*corev1.Node
	for _, n := range l.nodes {
		end, err := clusterview.EndOf(n)
		if err == nil && n.Name != pod.Spec.NodeName && lifetime.Outlives(end, l.now, lease) && clusterview.Leaving(n) == "" && !clusterview.Unready(n) {
			candidates = append(candidates, n)
		}
	}
	if len(candidates) == 0 {
		return "", nil
	}
	if err := l.prepare(ctx); err != nil {
		return "", err
	}
	allows := allowing(l.claims, pod)
	if candidates = slices.DeleteFunc(candidates, func(n *corev1.Node) bool { return !allows(n) }); len(candidates) == 0 {
		return "", nil
	}
	fits, err := l.filters.Fits(ctx, pod)
	if err != nil {
		return "", err
	}
	if at := slices.IndexFunc(candidates, func(n *corev1.Node) bool { return fits(n.Name) }); at >= 0 {
		return candidates[at].Name, nil
	}
	return "", nil
}

// extend has the lease of a pod end at another time, and no longer ask.
func (l *look) extend(ctx context.Context, pod *corev1.Pod, expiry time.Time) error {
	after := pod.DeepCopy()
	delete(after.Annotations, clusterview.RenewLeaseAnnotation)
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, clusterview.LeaseExpiryAnnotation, expiry.UTC().Format(time.RFC3339))
	err := l.Client.Patch(ctx, after, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("renewing the lease of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// move makes a Move for a pod, and reports whether it did. One that cannot be moved is told so.
func (l *look) move(ctx context.Context, pod *corev1.Pod) (bool, error) {
	set, deployment, ok, err := l.lookup.Owners(ctx, pod)
	if err != nil {
		return false, err
	}
	if !ok {
		l.say(pod, "its node "+pod.Spec.NodeName+" does not live long enough, and only pods of Deployments that allow a surge are moved, without volumes that one node alone can have")
		return false, nil
	}
	if by := clusterview.Spared(pod, l.now); by != "" {
		// Its node is not about to go yet. When it is, the pod is replaced as one of a drain.
		l.lookup.Refuse(pod)
		l.say(pod, "its node "+pod.Spec.NodeName+" does not live long enough, and the pod asks to be left there by the annotation "+by)
		return false, nil
	}
	if l.budget.SpentFor(&move.Owner{Set: set, Deployment: deployment}) {
		return false, nil
	}
	if evictable, err := l.lookup.Evictable(ctx, pod); evictable.Never != "" || err != nil {
		if err == nil {
			l.say(pod, "its node "+pod.Spec.NodeName+" does not live long enough, and "+evictable.Never)
		}
		return false, err
	}
	host, ok, err := move.HostOf(ctx, l.API, pod)
	if !ok || err != nil {
		return false, err
	}
	m := move.New(pod, set, deployment, placementv1alpha1.MoveLease, l.histories[string(pod.UID)])
	m.Spec.Avoid = host
	made, err := l.count.Make(ctx, l.Client, m)
	if made {
		l.budget.Take(set)
	}
	return made, err
}

// notice is what an Event has said of a pod, when it had that resource version.
type notice struct {
	why, version string
	at           time.Time
}

// say says in an Event of a pod why its lease is not renewed, once for each reason. Of a pod that is as it was, another reason can wait.
func (l *look) say(pod *corev1.Pod, why string) {
	last, is := l.said[pod.UID]
	if is && (last.why == why || last.version == pod.ResourceVersion && l.now.Sub(last.at).Abs() < notices.Apart) {
		return
	}
	if l.said == nil {
		l.said = make(map[types.UID]notice)
	}
	l.said[pod.UID] = notice{why, pod.ResourceVersion, l.now}
	l.Events.Eventf(pod, nil, corev1.EventTypeWarning, "LeaseNotRenewed", "Renew", "The lease is not renewed: %s.", why)
}
