// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/syncs"
	"github.com/espalier-scheduler/espalier/pkg/placement/stagger"
)

const (
	// every is the time between two looks at the nodes.
	every = 5 * time.Second
	// unseen is how long the cache may take to show that a node was cordoned.
	unseen = time.Minute
	// growing is for how long nodes that have no end yet wait for others at most.
	growing = time.Minute
)

// Controller gives the nodes of a pool their ends, and takes them out of service.
type Controller struct {
	// Client lists nodes and pods from a cache, and patches nodes.
	Client client.Client
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Options

	// begun is when nodes were taken out of service of which the cache may not know it yet. They count, so that no others are in their place.
	begun map[string]time.Time
	// fresh are the nodes that had no end at the last look, and since when there are any.
	fresh      map[string]bool
	freshSince time.Time
	// said are the nodes of which an Event has said that they have not reported.
	said map[string]bool
}

// Start looks at the nodes until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	syncs.Repeat(ctx, "stagger", every, "Giving nodes their ends", c.look)
	return nil
}

// look does one step for each node that is to have one.
func (c *Controller) look(ctx context.Context) error {
	var list corev1.NodeList
	if err := c.Client.List(ctx, &list, client.MatchingLabelsSelector{Selector: c.Nodes}); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	now := c.Clock.Now()
	maps.DeleteFunc(c.said, func(name string, _ bool) bool { // of nodes that are gone, or are given no ends any more
		return !slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return n.Name == name })
	})
	var serving []*corev1.Node
	out := make(map[string]int) // of service, by domain
	var errs []error
	maps.DeleteFunc(c.begun, func(_ string, at time.Time) bool { return now.Sub(at).Abs() > unseen })
	for i := range list.Items {
		n := &list.Items[i]
		_, begun := c.begun[n.Name]
		switch _, is := outOfService(n); {
		case is && !clusterview.Rebooted(n):
			out[c.domain(n)]++
			delete(c.begun, n.Name)
			errs = append(errs, c.drain(ctx, n, now))
		case begun:
			out[c.domain(n)]++
		default:
			serving = append(serving, n)
		}
	}
	errs = append(errs, c.serve(ctx, serving, out, now))
	return errors.Join(errs...)
}

// serve has nodes back that were rebooted, gives ends to those without, and takes out of service those whose end has come.
func (c *Controller) serve(ctx context.Context, nodes []*corev1.Node, out map[string]int, now time.Time) error {
	var errs []error
	var due, pool []stagger.Node
	byName := make(map[string]*corev1.Node, len(nodes))
	for _, n := range nodes {
		after := n.DeepCopy()
		c.back(after, now)
		byName[n.Name] = n
		switch is := c.node(after); {
		case is.Up.After(now): // by a clock that has jumped back
		case is.End.IsZero() || is.End.After(now):
			pool = append(pool, is)
		case c.reported(n, is.End):
			due = append(due, is)
		}
	}
	begun := c.Rule.Begin(due, out)
	for i := range begun {
		errs = append(errs, c.end(ctx, byName[begun[i].Name], now))
	}
	fresh := make(map[string]bool)
	for i := range pool {
		if _, had := byName[pool[i].Name].Annotations[clusterview.ValidUntilAnnotation]; pool[i].End.IsZero() && !had {
			fresh[pool[i].Name] = true
		}
	}
	if c.grow(fresh, now) {
		pool = slices.DeleteFunc(pool, func(n stagger.Node) bool { return fresh[n.Name] })
	}
	if dates := c.Schedule.Dates(now, c.Rule.Lifetime); len(dates) > 0 {
		for i, end := range c.Rule.Assign(dates, pool) {
			errs = append(errs, c.give(ctx, byName[pool[i].Name], &pool[i], end, now))
		}
	}
	return errors.Join(errs...)
}

// grow notes the nodes that have no end yet, and reports whether some have come since the last look, so that more may follow. Those of a pool that is
// made now get their ends together: if each got the best one of that moment, the last ones might find room only on a date that has enough.
func (c *Controller) grow(fresh map[string]bool, now time.Time) bool {
	come, waited := 0, 0
	for name := range fresh {
		if c.fresh[name] {
			waited++
		} else {
			come++
		}
	}
	c.fresh = fresh
	if waited == 0 {
		c.freshSince = now
	}
	return come > 0 && now.Sub(c.freshSince).Abs() < growing
}

// reported reports whether a node has said that it is there about when it ended, or later. Where a clock jumps ahead the ends of all nodes have
// come, and it is no reason to empty them: each node has a clock of its own.
func (c *Controller) reported(n *corev1.Node, end time.Time) bool {
	last := clusterview.LastReport(n)
	if !last.Before(end.Add(-clusterview.ReportsWithin)) {
		delete(c.said, n.Name)
		return true
	}
	if !c.said[n.Name] {
		if c.said == nil {
			c.said = make(map[string]bool)
		}
		c.said[n.Name] = true
		c.Events.Eventf(n, nil, corev1.EventTypeWarning, "NodeEndNotReported", "Cordon",
			"The node has reached its end by the controller's clock, and has not reported since %s. It stays in service until it does.", last.UTC().Format(time.RFC3339))
	}
	return false
}

// node is a node as the rule sees it. An end that the schedule has not given is one after which the node is gone anyhow.
func (c *Controller) node(n *corev1.Node) stagger.Node {
	is := stagger.Node{Name: n.Name, Domain: c.domain(n), Up: n.CreationTimestamp.Time}
	if since, ok := clusterview.UpSince(n); ok {
		is.Up = since
	}
	end, err := clusterview.EndOf(n)
	switch {
	case err != nil:
	case clusterview.EndIsBy(n, clusterview.BySchedule):
		is.End = end
	default:
		is.Latest = end
	}
	return is
}

func (c *Controller) domain(n *corev1.Node) string { return clusterview.DomainOf(n, c.Domain) }

// drain waits for the pods of a node that is out of service, and leaves it to be rebooted when they are gone, or time is up.
func (c *Controller) drain(ctx context.Context, n *corev1.Node, now time.Time) error {
	since, _ := outOfService(n)
	left, err := c.left(ctx, n)
	if err != nil {
		return err
	}
	waited := now.Sub(since)
	if !clusterview.Unready(n) { // its own clock says that too, in case the controller's has jumped
		waited = min(waited, clusterview.LastReport(n).Add(clusterview.ReportsWithin).Sub(since))
	}
	if left > 0 && waited < c.DrainFor {
		return nil
	}
	return c.leave(ctx, n, left, now)
}

// left counts the pods on a node that are to be moved: those of ReplicaSets and StatefulSets that our schedulers have placed. What becomes of all
// others is for whoever reboots the node. Nobody evicts a pod of a StatefulSet that the cordon does not keep off, as it would come back, so nobody waits
// for it either.
func (c *Controller) left(ctx context.Context, node *corev1.Node) (n int, err error) {
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOfNoCopy(p)
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		moved := owner != nil && (owner.Kind == "ReplicaSet" || owner.Kind == "StatefulSet" || owner.Kind == "Move")
		moved = moved && (owner.Kind != "StatefulSet" || clusterview.KeepsOff(node, p))
		if p.Spec.NodeName == node.Name && !ended && moved && slices.Contains(c.Schedulers, p.Spec.SchedulerName) {
			n++
		}
	}
	return n, nil
}
