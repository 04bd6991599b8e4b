// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/controllers/syncs"
)

// every is the time between two looks at the pods.
const every = 2 * time.Second

// Options are what a Controller goes by.
type Options struct {
	// Schedulers are those whose pods are looked at, by schedulerName, and Namespaces selects those in which they are.
	Schedulers []string
	Namespaces labels.Selector
	// AtOnce bounds the Moves that have not ended, of all reasons.
	AtOnce int
	// Allocations is whether schedulers keep pods to the nodes of their allocations. Where they do not, there may be objects of that kind all the
	// same.
	Allocations bool
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error { return move.ValidateAtOnce(o.AtOnce) }

// Controller renews the leases of pods.
type Controller struct {
	// Client lists from a cache, changes pods and makes Moves. API reads from the API server.
	Client client.Client
	API    client.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Options

	lookup move.Lookup
	// said is the last Event of each pod whose lease could not be renewed.
	said map[types.UID]notice
}

// Start looks at the pods until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	syncs.Repeat(ctx, "lease", every, "Renewing the leases of pods", c.look)
	return nil
}

// look does what can be done now for the pods that ask.
func (c *Controller) look(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of what the filters have started
	all, asking, err := c.pods(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(c.said, func(uid types.UID, _ notice) bool {
		return !slices.ContainsFunc(asking, func(p *corev1.Pod) bool { return p.UID == uid })
	})
	if len(asking) == 0 {
		return nil
	}
	count := move.NewCount()
	var moves placementv1alpha1.MoveList
	if err := c.API.List(ctx, &moves); err != nil {
		return fmt.Errorf("listing Moves: %w", err)
	}
	l := &look{
		Controller: c, now: c.Clock.Now(), pods: all, count: count,
		histories: move.Histories(moves.Items), budget: move.BudgetOf(c.AtOnce, moves.Items),
	}
	if err := l.readNodes(ctx); err != nil {
		return err
	}
	c.lookup.Begin(c.API, nil, l.now)
	turns := move.NewTurns(asking, func(p *corev1.Pod) *corev1.Pod { return p }, moves.Items, l.histories)
	var errs []error
	for p := range turns.All() {
		moved, err := l.renew(ctx, p)
		if moved {
			turns.Made(p)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// pods lists those that are on nodes, and of these the ones that ask for a new lease, in order.
func (c *Controller) pods(ctx context.Context) (all, asking []*corev1.Pod, err error) {
	var namespaces corev1.NamespaceList
	if err := c.Client.List(ctx, &namespaces, client.MatchingLabelsSelector{Selector: c.Namespaces}); err != nil {
		return nil, nil, fmt.Errorf("listing namespaces: %w", err)
	}
	selected := make(map[string]bool, len(namespaces.Items))
	for i := range namespaces.Items {
		selected[namespaces.Items[i].Name] = true
	}
	var list corev1.PodList
	// Nothing is changed of what is listed.
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing pods: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		all = append(all, p)
		if _, asks := p.Annotations[clusterview.RenewLeaseAnnotation]; asks && p.DeletionTimestamp == nil && selected[p.Namespace] &&
			slices.Contains(c.Schedulers, p.Spec.SchedulerName) {
			asking = append(asking, p)
		}
	}
	slices.SortFunc(asking, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, asking, nil
}
