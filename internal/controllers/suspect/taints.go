// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package suspect

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// taint taints a scheduler's suspects, and removes its taint from all other nodes.
func (c *Controller) taint(ctx context.Context, scheduler string, suspects sets.Set[string]) error {
	nodes, err := c.nodes(ctx)
	if err != nil {
		return err
	}
	now := c.Clock.Now()
	added := c.addedFor(scheduler, now)
	room := min(c.MaxPerHour-withinHour(now, scheduler, nodes, added), c.MaxNodes-tainted(scheduler, nodes, added, suspects))
	for i := range nodes {
		node := &nodes[i]
		switch ours := taintOf(scheduler, node); {
		case ours != nil && !suspects.Has(node.Name):
			c.setTaint(ctx, scheduler, node, nil)
		case ours != nil && ours.Effect != c.Effect: // of a controller with other flags
			changed := *ours
			changed.Effect = c.Effect
			c.setTaint(ctx, scheduler, node, &changed)
		case ours == nil && suspects.Has(node.Name) && room > 0:
			// It may have been set, though the answer is lost: then the cache will have it.
			room--
			if c.setTaint(ctx, scheduler, node, &corev1.Taint{
				Key: clusterview.SuspectTaint, Value: scheduler, Effect: c.Effect, TimeAdded: &metav1.Time{Time: now},
			}) {
				added[node.Name] = now
			}
		}
	}
	return nil
}

// addedFor are the nodes that were tainted for a scheduler within the hour, and when.
func (c *Controller) addedFor(scheduler string, now time.Time) map[string]time.Time {
	if c.added == nil {
		c.added = make(map[string]map[string]time.Time)
	}
	if c.added[scheduler] == nil {
		c.added[scheduler] = make(map[string]time.Time)
	}
	maps.DeleteFunc(c.added[scheduler], func(_ string, at time.Time) bool { return now.Sub(at) >= time.Hour })
	return c.added[scheduler]
}

// tainted is how many nodes are tainted: those included from which the taint is about to be
// removed, which may fail, and those of which the cache does not know it yet.
func tainted(scheduler string, nodes []corev1.Node, added map[string]time.Time, suspects sets.Set[string]) (n int) {
	for i := range nodes {
		node := &nodes[i]
		if _, ok := added[node.Name]; taintOf(scheduler, node) != nil || ok && suspects.Has(node.Name) {
			n++
		}
	}
	return n
}

// withinHour is how many nodes were tainted within the hour. A controller that has just started
// reads it from the taints that are there.
func withinHour(now time.Time, scheduler string, nodes []corev1.Node, added map[string]time.Time) int {
	n := len(added)
	for i := range nodes {
		if _, known := added[nodes[i].Name]; known {
			continue
		}
		if t := taintOf(scheduler, &nodes[i]); t != nil && (t.TimeAdded == nil || now.Sub(t.TimeAdded.Time) < time.Hour) {
			n++
		}
	}
	return n
}

// taintOf is a scheduler's taint on a node, nil if there is none. Another scheduler's, or one that
// somebody else has put there, stays.
func taintOf(scheduler string, node *corev1.Node) *corev1.Taint {
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; isOf(scheduler, t) {
			return t
		}
	}
	return nil
}

func isOf(scheduler string, t *corev1.Taint) bool {
	return t.Key == clusterview.SuspectTaint && t.Value == scheduler
}

// setTaint puts a scheduler's taint on a node, or with nil removes it. It fails if the node has
// changed meanwhile: the list of taints is replaced as a whole, and must not remove another's. It
// reports whether it did.
func (c *Controller) setTaint(ctx context.Context, scheduler string, node *corev1.Node, taint *corev1.Taint) bool {
	ctx, cancel := context.WithTimeout(ctx, calling)
	defer cancel()
	all := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return isOf(scheduler, &t) })
	if taint != nil {
		all = append(all, *taint)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": all},
	})
	if err == nil {
		err = c.Nodes.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}, client.RawPatch(types.MergePatchType, patch))
	}
	logger := klog.FromContext(ctx)
	switch {
	case err == nil:
		logger.V(2).Info("Changed the taints of a node", "node", node.Name, "key", clusterview.SuspectTaint, "tainted", taint != nil)
	case apierrors.IsConflict(err):
		logger.V(4).Info("A node has changed before its taints could be", "node", node.Name)
	default:
		logger.Error(err, "Changing the taints of a node; give the controller the right to patch nodes, or leave --taint-suspects out",
			"node", node.Name, "key", clusterview.SuspectTaint)
	}
	return err == nil
}
