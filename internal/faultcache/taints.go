// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// calling is how long a call to the API server may take.
const calling = 10 * time.Second

// taints are those of the suspects. They are seen to by one goroutine.
type taints struct {
	// of are the suspects that were last seen to, and next is when all nodes are seen to
	// in any case: what failed is tried again, and what was left over is found.
	of   map[string]bool
	next time.Time
	// added is when we have tainted a node, as the informer may not know yet.
	added map[string]time.Time
}

// keepTaints sees to the taints until the context ends, beside everything else: calls
// that take their time must not hold up the proofs that are due.
func (c *Cache) keepTaints(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case suspects := <-c.suspected:
			c.seeToTaints(ctx, c.Clock.Now(), suspects)
		}
	}
}

// wantTaints has them seen to for these suspects, and no others.
func (c *Cache) wantTaints(suspects map[string]bool) {
	select {
	case <-c.suspected:
	default:
	}
	c.suspected <- suspects // there is room: nobody else sends
}

// seeToTaints taints the suspects, and takes our taint from all other nodes.
func (c *Cache) seeToTaints(ctx context.Context, now time.Time, suspects map[string]bool) {
	if c.options.Taint.Effect == "" || c.Client == nil || !c.inherited.Load() {
		return
	}
	if maps.Equal(c.taints.of, suspects) && now.Before(c.taints.next) {
		return
	}
	c.taints.of, c.taints.next = suspects, now.Add(sweeping)
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Listing nodes for their taints")
		return
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	room := min(c.options.Taint.MaxPerHour-c.taintedWithinHour(now, nodes), c.options.Taint.MaxNodes-c.taintedNow(nodes, suspects))
	for _, node := range nodes {
		switch ours := c.ours(node); {
		case ours != nil && !suspects[node.Name]:
			c.setTaint(ctx, node, nil)
		case ours != nil && ours.Effect != c.options.Taint.Effect: // of a scheduler with other arguments
			taint := *ours
			taint.Effect = c.options.Taint.Effect
			c.setTaint(ctx, node, &taint)
		case ours == nil && suspects[node.Name] && room > 0:
			// It may have been, though the answer is lost: then the informer will say so.
			room--
			if c.setTaint(ctx, node, &corev1.Taint{
				Key: clusterview.SuspectTaint, Value: c.options.SchedulerName, Effect: c.options.Taint.Effect, TimeAdded: &metav1.Time{Time: now},
			}) {
				c.taints.added[node.Name] = now
			}
		}
	}
}

// taintedNow is how many nodes are tainted, those included from which the taint is about
// to be taken, which may fail, and those of which the informer does not know it yet.
func (c *Cache) taintedNow(nodes []*corev1.Node, suspects map[string]bool) (n int) {
	for _, node := range nodes {
		if _, added := c.taints.added[node.Name]; c.ours(node) != nil || added && suspects[node.Name] {
			n++
		}
	}
	return n
}

// taintedWithinHour is how many nodes were tainted within the hour. A scheduler that has just
// started reads it from the taints that are there.
func (c *Cache) taintedWithinHour(now time.Time, nodes []*corev1.Node) int {
	maps.DeleteFunc(c.taints.added, func(_ string, at time.Time) bool { return now.Sub(at) >= time.Hour })
	n := len(c.taints.added)
	for _, node := range nodes {
		if _, known := c.taints.added[node.Name]; known {
			continue
		}
		if t := c.ours(node); t != nil && (t.TimeAdded == nil || now.Sub(t.TimeAdded.Time) < time.Hour) {
			n++
		}
	}
	return n
}

// ours is our taint on a node, nil if there is none. Another scheduler's, or one that
// somebody has put there, is not ours to take away.
func (c *Cache) ours(node *corev1.Node) *corev1.Taint {
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; c.isOurs(t) {
			return t
		}
	}
	return nil
}

func (c *Cache) isOurs(t *corev1.Taint) bool {
	return t.Key == clusterview.SuspectTaint && t.Value == c.options.SchedulerName
}

// setTaint puts our taint on a node, or with nil takes it away. It fails if the node
// has changed meanwhile: the list of taints is replaced as a whole, and must not take
// away another's. It reports whether it did.
func (c *Cache) setTaint(ctx context.Context, node *corev1.Node, taint *corev1.Taint) bool {
	ctx, cancel := context.WithTimeout(ctx, calling)
	defer cancel()
	all := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return c.isOurs(&t) })
	if taint != nil {
		all = append(all, *taint)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": all},
	})
	if err == nil {
		_, err = c.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: c.options.SchedulerName})
	}
	logger := klog.FromContext(ctx)
	switch {
	case err == nil:
		logger.V(2).Info("Changed the taints of a node", "node", klog.KObj(node), "key", clusterview.SuspectTaint, "tainted", taint != nil)
	case apierrors.IsConflict(err):
		logger.V(4).Info("A node has changed before its taints could be", "node", klog.KObj(node))
	default:
		logger.Error(err, "Changing the taints of a node; give the scheduler the right to patch nodes, or switch suspects.taint off",
			"node", klog.KObj(node), "key", clusterview.SuspectTaint)
	}
	return err == nil
}
