// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/governing"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/upstream/filters"
)

// cluster is nodes, pods and Moves at one moment.
type cluster struct {
	now        time.Time
	nodes      []*corev1.Node
	namespaces []*corev1.Namespace
	// pods are those that are on nodes and have not ended, all and by node; bySet are those of a ReplicaSet.
	pods  []*corev1.Pod
	on    map[string][]*corev1.Pod
	bySet map[types.UID][]*corev1.Pod
	moves []placementv1alpha1.Move
	// count is of these Moves.
	count *move.Count
	// policies say which Deployments are left as they are.
	policies *governing.Policies
	// histories are the Moves of each pod.
	histories map[string]move.History
	// sum is another one if the nodes are others, as far as it matters here.
	sum uint64
	// filters are made when the first Deployment is not even.
	filters *filters.Cluster
}

// read reads a cluster: Moves from the API server, as they have just been made, and all else from a cache.
func read(ctx context.Context, cache, api client.Reader, now time.Time) (*cluster, error) {
	c := &cluster{now: now, count: move.NewCount(), on: make(map[string][]*corev1.Pod), bySet: make(map[types.UID][]*corev1.Pod)}
	var nodes corev1.NodeList
	var pods corev1.PodList
	var namespaces corev1.NamespaceList
	var moves placementv1alpha1.MoveList
	for _, list := range []struct {
		from client.Reader
		into client.ObjectList
	}{{cache, &nodes}, {cache, &pods}, {cache, &namespaces}, {api, &moves}} {
		// Nothing is changed of what is listed.
		if err := list.from.List(ctx, list.into, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing: %w", err)
		}
	}
	c.moves, c.histories = moves.Items, move.Histories(moves.Items)
	for i := range nodes.Items {
		c.nodes = append(c.nodes, &nodes.Items[i])
	}
	slices.SortFunc(c.nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	c.sum = sumOf(c.nodes)
	for i := range namespaces.Items {
		c.namespaces = append(c.namespaces, &namespaces.Items[i])
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		c.pods = append(c.pods, p)
		c.on[p.Spec.NodeName] = append(c.on[p.Spec.NodeName], p)
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil && owner.Kind == "ReplicaSet" {
			c.bySet[owner.UID] = append(c.bySet[owner.UID], p)
		}
	}
	return c, nil
}

// fits returns which nodes could take another pod like this one, by the filters of kube-scheduler.
func (c *cluster) fits(ctx context.Context, pod *corev1.Pod) (func(node string) bool, error) {
	if c.filters == nil {
		var err error
		if c.filters, err = filters.New(ctx, c.nodes, c.pods, c.namespaces); err != nil {
			return nil, err
		}
	}
	return c.filters.Fits(ctx, pod)
}

// fitsInstead reports whether a node could take another pod like this one when this one is gone. The filters must have been asked before.
func (c *cluster) fitsInstead(ctx context.Context, pod *corev1.Pod, node string) (bool, error) {
	fits, err := c.filters.FitsInstead(ctx, pod)
	return err == nil && fits(node), err
}

// busy are the Moves that are about to replace or to evict a pod.
func (c *cluster) busy() (busy []*placementv1alpha1.Move) {
	for i := range c.moves {
		if m := &c.moves[i]; move.Busy(m) {
			busy = append(busy, m)
		}
	}
	return busy
}

// madeSince counts the Moves that were made to rebalance.
func (c *cluster) madeSince(t time.Time) (n int) {
	for i := range c.moves {
		if m := &c.moves[i]; m.Spec.Reason == placementv1alpha1.MoveRebalance && m.CreationTimestamp.After(t) {
			n++
		}
	}
	return n
}

// moveOf returns a Move that keeps a Deployment from being looked at: one that has not ended, or one to rebalance that came to nothing
// within the time for which it is kept. It is nil if there is none.
func (c *cluster) moveOf(d *appsv1.Deployment) *placementv1alpha1.Move {
	for i := range c.moves {
		m := &c.moves[i]
		owner := metav1.GetControllerOfNoCopy(m)
		if owner == nil || owner.UID != d.UID {
			continue
		}
		if !m.Status.Phase.Ended() || m.Spec.Reason == placementv1alpha1.MoveRebalance && m.Status.Phase != placementv1alpha1.MoveDone {
			return m
		}
	}
	return nil
}

// readyFor is for how long a node has said that it is ready, -1 for one that does not.
func readyFor(node *corev1.Node, now time.Time) time.Duration {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return max(0, now.Sub(c.LastTransitionTime.Time))
		}
	}
	return -1
}
