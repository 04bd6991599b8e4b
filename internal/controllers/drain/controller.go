// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/governing"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/controllers/syncs"
)

// every is the time between two looks at the nodes. kubectl drain asks every five seconds.
const every = 2 * time.Second

// Which pods of a node that is about to be removed are replaced first, unless their policies say so; with None and move.ByPolicy none are.
const (
	// None are none.
	None = ""
	// Blocked are those that a disruption budget keeps from being evicted.
	Blocked = string(placementv1alpha1.DrainedBlocked)
	// All are all that can be.
	All = string(placementv1alpha1.DrainedAll)
)

// Options are what a Controller goes by.
type Options struct {
	// Pods is None, Blocked, All or move.ByPolicy. With None only those are that are on nodes which were cordoned for their ends.
	Pods string
	// Schedulers are those whose pods are replaced, by schedulerName, and Namespaces selects those in which they are.
	Schedulers []string
	Namespaces labels.Selector
	// AtOnce bounds the Moves that have not ended, of all reasons.
	AtOnce int
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error {
	if o.Pods != None && o.Pods != Blocked && o.Pods != All && o.Pods != move.ByPolicy {
		return fmt.Errorf("%q is no choice of pods: use %s, %s or %s", o.Pods, Blocked, All, move.ByPolicy)
	}
	return move.ValidateAtOnce(o.AtOnce)
}

// of is which pods of a policy's are replaced, on a node that was cordoned for its end or on another one. The policy is nil for pods that none
// governs. Nobody else empties a node that has reached its end, so all are replaced there if any are.
func (o *Options) of(p *clusterview.Policy, ended bool) placementv1alpha1.DrainedPods {
	switch {
	case ended:
		if which := p.Drained(placementv1alpha1.DrainedAll); which != placementv1alpha1.DrainedBlocked {
			return which
		}
		return placementv1alpha1.DrainedAll
	case o.Pods == None:
		return placementv1alpha1.DrainedNone
	case o.Pods == move.ByPolicy:
		return p.Drained(placementv1alpha1.DrainedNone)
	}
	return p.Drained(placementv1alpha1.DrainedPods(o.Pods))
}

// Replaces reports whether a pod on a node that somebody is about to remove is one that is replaced.
func (o *Options) Replaces(ctx context.Context, cache client.Reader, pod *corev1.Pod, node *corev1.Node) (bool, error) {
	var namespace corev1.Namespace
	if err := cache.Get(ctx, client.ObjectKey{Name: pod.Namespace}, &namespace); err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", pod.Namespace, err)
	}
	if !o.Namespaces.Matches(labels.Set(namespace.Labels)) || !slices.Contains(o.Schedulers, pod.Spec.SchedulerName) {
		return false, nil
	}
	var reader governing.Reader
	all, err := reader.Read(ctx, cache)
	if err != nil {
		return false, err
	}
	_, ended := node.Annotations[clusterview.CordonedForEndAnnotation]
	return o.of(all.Of(pod), ended) != placementv1alpha1.DrainedNone, nil
}

// Controller makes Moves for pods on nodes that somebody is about to remove.
type Controller struct {
	// Client lists nodes and pods, which may be from a cache, and makes Moves. API reads from the API server.
	Client client.Client
	API    client.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Options

	policies governing.Reader
	lookup   move.Lookup
}

// candidate is a pod that may be replaced, and which pods of its policy's are.
type candidate struct {
	pod   *corev1.Pod
	which placementv1alpha1.DrainedPods
}

// Start looks at the nodes until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	syncs.Repeat(ctx, "drain", every, "Looking for pods to be replaced before they are evicted", c.look)
	return nil
}

// look makes the Moves that may be made now.
func (c *Controller) look(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	leaving := leavingOf(nodes.Items)
	if len(leaving) == 0 {
		return nil
	}
	candidates, err := c.candidates(ctx, leaving)
	if err != nil || len(candidates) == 0 {
		return err
	}
	return c.move(ctx, candidates)
}

// leavingOf returns the nodes that somebody is about to remove, and of each whether it was cordoned for its end. Where all nodes are for the same reason, and take pods all the same, as when a
// change of all of them is planned, it is none: no pod is better off on another one. With cordoned ones it is different: another pod waits
// for a node, and autoscalers see that.
func leavingOf(nodes []corev1.Node) map[string]bool {
	leaving, taking := make(map[string]bool), make(map[string]int)
	for i := range nodes {
		n := &nodes[i]
		by := clusterview.Leaving(n)
		if by != "" {
			_, leaving[n.Name] = n.Annotations[clusterview.CordonedForEndAnnotation]
		}
		if !n.Spec.Unschedulable && clusterview.Soft(n) != "" {
			taking[by]++
		}
		if taking[by] == len(nodes) {
			return nil
		}
	}
	return leaving
}

// candidates are the pods on nodes that are to be replaced, if their disruption budgets say so too.
func (c *Controller) candidates(ctx context.Context, leaving map[string]bool) (candidates []candidate, err error) {
	var namespaces corev1.NamespaceList
	if err := c.Client.List(ctx, &namespaces, client.MatchingLabelsSelector{Selector: c.Namespaces}); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	selected := sets.New[string]()
	for i := range namespaces.Items {
		selected.Insert(namespaces.Items[i].Name)
	}
	policies, err := c.policies.Read(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOfNoCopy(p)
		ended, leaves := leaving[p.Spec.NodeName]
		if !leaves || !selected.Has(p.Namespace) || !slices.Contains(c.Schedulers, p.Spec.SchedulerName) {
			continue
		}
		if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning || owner == nil || owner.Kind != "ReplicaSet" && owner.Kind != "StatefulSet" {
			continue
		}
		switch which := c.of(policies.Of(p), ended); which {
		case placementv1alpha1.DrainedBlocked, placementv1alpha1.DrainedAll:
			candidates = append(candidates, candidate{p, which})
		case placementv1alpha1.DrainedNone:
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	return candidates, nil
}

// move makes Moves for some of the candidates.
func (c *Controller) move(ctx context.Context, candidates []candidate) error {
	count := move.NewCount()
	var moves placementv1alpha1.MoveList
	if err := c.API.List(ctx, &moves); err != nil {
		return fmt.Errorf("listing Moves: %w", err)
	}
	histories, budget := move.Histories(moves.Items), move.BudgetOf(c.AtOnce, moves.Items)
	turns := move.NewTurns(candidates, func(one candidate) *corev1.Pod { return one.pod }, moves.Items, histories)
	now := c.Clock.Now()
	c.lookup.Begin(c.API, c.Events, now)
	var errs []error
	for one := range turns.All() {
		if budget.Spent() || count.Stale() {
			break
		}
		if history := histories[string(one.pod.UID)]; !history.Waits(now) && !c.lookup.Rests(one.pod) {
			made, err := c.moveOne(ctx, one, history, budget, count)
			if made {
				turns.Made(one)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// moveOne makes a Move for a pod, if it may have one now.
func (c *Controller) moveOne(ctx context.Context, one candidate, history move.History, budget *move.Budget, count *move.Count) (made bool, err error) {
	pod := one.pod
	evictable, err := c.lookup.Evictable(ctx, pod)
	if evictable.Never != "" || err != nil {
		return false, err
	}
	if one.which == placementv1alpha1.DrainedBlocked && !evictable.Blocked {
		c.lookup.Refuse(pod)
		return false, nil
	}
	owner, ok, err := c.lookup.Owner(ctx, pod)
	if !ok || err != nil || budget.SpentFor(&owner) {
		return false, err
	}
	switch {
	case owner.EvictFirst && one.which != placementv1alpha1.DrainedAll:
		c.lookup.Refuse(pod) // what keeps another one from coming first keeps this one too, and who drains the node evicts it when it may go
		return false, nil
	case owner.EvictFirst && evictable.Blocked:
		return false, nil // it would wait as one of those that may be moved at once
	}
	m := owner.Move(pod, placementv1alpha1.MoveDrain, history)
	if refuses, err := c.lookup.RefusesFirst(ctx, m, pod, &owner); refuses || err != nil {
		return false, err
	}
	host, ok, err := move.HostOf(ctx, c.API, pod)
	if !ok || err != nil {
		return false, err
	}
	m.Spec.Avoid = host
	made, err = count.Make(ctx, c.Client, m)
	if made {
		budget.TakeFor(&owner)
	}
	return made, err
}
