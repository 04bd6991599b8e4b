// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/syncs"
)

// every is the time between two looks. A node takes longer to become ready.
const every = 2 * time.Second

// Controller writes the ends of NodeClaims on their nodes.
type Controller struct {
	// Client lists nodes and NodeClaims from a cache, and patches nodes.
	Client client.Client
	Events events.EventRecorder

	// said is what an Event has said of each NodeClaim that cannot be read.
	said map[types.UID]string
}

// Start looks at the NodeClaims until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	syncs.Repeat(ctx, "nodeclaim", every, "Writing the ends of NodeClaims on their nodes", c.look)
	return nil
}

// look has the nodes say what their NodeClaims do.
func (c *Controller) look(ctx context.Context) error {
	ends, err := c.ends(ctx)
	if err != nil || len(ends) == 0 {
		return err
	}
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	var errs []error
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if end, ok := ends[node.Name]; ok {
			errs = append(errs, c.write(ctx, node, end))
		}
	}
	return errors.Join(errs...)
}

// ends are those of all NodeClaims that have a node, by its name, and the zero time where one never ends. One that cannot be read has none
// here, and its node stays as it is.
func (c *Controller) ends(ctx context.Context) (map[string]time.Time, error) {
	claims := &unstructured.UnstructuredList{}
	claims.SetGroupVersionKind(clusterview.NodeClaimKind)
	if err := c.Client.List(ctx, claims, client.UnsafeDisableDeepCopy); meta.IsNoMatchError(err) {
		return map[string]time.Time{}, nil
	} else if err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	ends, said := make(map[string]time.Time), make(map[types.UID]string)
	for i := range claims.Items {
		claim := &claims.Items[i]
		end, err := clusterview.EndOfClaim(claim)
		if err != nil {
			said[claim.GetUID()] = err.Error()
			if c.said[claim.GetUID()] != err.Error() {
				c.Events.Eventf(claim, nil, corev1.EventTypeWarning, "NodeEndUnreadable", "ReadEnd", "%s. Its node has the end that it had.", err)
			}
			continue
		}
		if node := clusterview.NodeOfClaim(claim); node != "" {
			ends[node] = end
		}
	}
	c.said = said
	return ends, nil
}

// write writes the end of a NodeClaim on its node, unless another one stands there that holds.
func (c *Controller) write(ctx context.Context, node *corev1.Node, end time.Time) error {
	is, err := clusterview.EndOf(node)
	ours := clusterview.EndIsBy(node, clusterview.ByNodeClaim)
	switch _, has := node.Annotations[clusterview.ValidUntilAnnotation]; {
	case ours && is.Equal(end), !has && end.IsZero():
		return nil
	case has && !ours:
		earlier := err == nil && !end.IsZero() && end.Before(is)
		if !earlier || !clusterview.EndIsBy(node, clusterview.BySchedule) {
			return nil
		}
	}
	after := node.DeepCopy()
	clusterview.SetEnd(after, clusterview.ByNodeClaim, end)
	err = c.Client.Patch(ctx, after, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the end of node %s: %w", node.Name, err)
	}
	return nil
}
