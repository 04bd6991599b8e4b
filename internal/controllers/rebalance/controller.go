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
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllers/governing"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/controllers/syncs"
)

// every is the time between two looks, and lookFor how long one may plan: the next goes on with the Deployments that are left.
const (
	every   = 2 * time.Second
	lookFor = time.Second
)

// Controller makes Moves for Deployments that are not even.
type Controller struct {
	// Client lists from a cache and makes Moves. API reads from the API server.
	Client client.Client
	API    client.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Options

	policies governing.Reader
	lookup   move.Lookup
	quiet    quiet
	verdicts map[types.UID]verdict
	tried    map[types.UID]attempt
	// last is the Deployment that the last look ended with.
	last types.NamespacedName
	// said is the last Event about a pod that is not replaced, by Deployment.
	said map[types.UID]notice
}

// Start looks at the Deployments until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	c.quiet, c.verdicts, c.tried, c.said = make(quiet), make(map[types.UID]verdict), make(map[types.UID]attempt), make(map[types.UID]notice)
	syncs.Repeat(ctx, "rebalance", every, "Looking for pods that are misplaced", c.look)
	return nil
}

// look makes the Moves that may be made now.
func (c *Controller) look(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of what the filters have started
	now := c.Clock.Now()
	deployments, sets, err := c.deployments(ctx)
	if err != nil {
		return err
	}
	var waiting []*appsv1.Deployment
	for _, d := range deployments {
		// One that is at work has been quiet for 0, which is as long as some want.
		if c.quiet.look(d, now) >= c.Quiet && settled(d) && move.Surge(d) > 0 {
			waiting = append(waiting, d)
		}
	}
	c.forget(now.Add(-time.Hour))
	if len(waiting) == 0 || !open(c.Windows, now) {
		return nil
	}
	all, err := read(ctx, c.Client, c.API, now)
	if err != nil {
		return err
	}
	if all.policies, err = c.policies.Read(ctx, c.Client); err != nil {
		return err
	}
	c.lookup.Begin(c.API, c.Events, now)
	room := c.roomFor(all)
	for _, d := range c.inTurn(waiting) {
		if c.Mode != DryRun && (room.none() || all.count.Stale()) || c.Clock.Since(now) > lookFor {
			break
		}
		c.last = client.ObjectKeyFromObject(d)
		if err := c.rebalance(ctx, all, d, sets[d.UID], room); err != nil {
			return err
		}
	}
	return nil
}

// forget drops what is known of Deployments that have not been looked at for a while.
func (c *Controller) forget(before time.Time) {
	c.quiet.forget(before)
	for uid := range c.verdicts {
		if _, known := c.quiet[uid]; !known {
			delete(c.verdicts, uid)
			delete(c.said, uid)
			delete(c.tried, uid)
		}
	}
}

// deployments lists those of the selected namespaces in order, and the newest ReplicaSet of each.
func (c *Controller) deployments(ctx context.Context) ([]*appsv1.Deployment, map[types.UID]*appsv1.ReplicaSet, error) {
	var deployments appsv1.DeploymentList
	if err := c.Client.List(ctx, &deployments, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing Deployments: %w", err)
	}
	var sets appsv1.ReplicaSetList
	if err := c.Client.List(ctx, &sets, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	var namespaces corev1.NamespaceList
	if err := c.Client.List(ctx, &namespaces, client.MatchingLabelsSelector{Selector: c.Namespaces}); err != nil {
		return nil, nil, fmt.Errorf("listing namespaces: %w", err)
	}
	selected := make(map[string]bool, len(namespaces.Items))
	for i := range namespaces.Items {
		selected[namespaces.Items[i].Name] = true
	}
	var all []*appsv1.Deployment
	newest, revisions := make(map[types.UID]*appsv1.ReplicaSet), make(map[types.UID]string)
	for i := range deployments.Items {
		if d := &deployments.Items[i]; selected[d.Namespace] {
			all = append(all, d)
			revisions[d.UID] = move.Revision(d)
		}
	}
	for i := range sets.Items {
		s := &sets.Items[i]
		if owner := metav1.GetControllerOfNoCopy(s); owner != nil && revisions[owner.UID] != "" && revisions[owner.UID] == move.Revision(s) {
			newest[owner.UID] = s
		}
	}
	slices.SortFunc(all, func(a, b *appsv1.Deployment) int {
		return compare(client.ObjectKeyFromObject(a), client.ObjectKeyFromObject(b))
	})
	return all, newest, nil
}

func compare(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// inTurn puts those in front that come after the one that was looked at last.
func (c *Controller) inTurn(deployments []*appsv1.Deployment) []*appsv1.Deployment {
	at, found := slices.BinarySearchFunc(deployments, c.last, func(d *appsv1.Deployment, last types.NamespacedName) int {
		return compare(client.ObjectKeyFromObject(d), last)
	})
	if found {
		at++
	}
	return slices.Concat(deployments[at:], deployments[:at])
}

// rebalance makes a Move for a Deployment, or says which one it would make.
func (c *Controller) rebalance(ctx context.Context, all *cluster, d *appsv1.Deployment, set *appsv1.ReplicaSet, room *room) error {
	if set == nil || all.moveOf(d) != nil || c.tried[d.UID].rests(all.now) {
		return nil
	}
	w, ok := c.workloadOf(set, all.bySet[set.UID])
	if !ok || room.movesOf(w) || !all.policies.Of(w.Pods[0]).Rebalances(c.Mode != move.ByPolicy) {
		return nil
	}
	sum := w.sum(all)
	if v, known := c.verdicts[d.UID]; known && v.holds(sum, all.now) {
		return nil
	}
	next, isEven, err := w.plan(ctx, all, &c.Options)
	if err != nil || next == nil {
		c.verdicts[d.UID] = verdict{sum, isEven && w.Alone, all.now}
		if err == nil && isEven {
			delete(c.tried, d.UID) // what makes it uneven from here on is something new
		}
		return err
	}
	if next.spared != "" {
		c.verdicts[d.UID] = verdict{sum, false, all.now}
		c.sayOnce(d, next.pod, "MoveWithheld",
			"Pod %s on node %s is misplaced, and stays: it asks for that by the annotation %s, and no other pod that may go makes the Deployment more even.",
			next.pod.Name, next.pod.Spec.NodeName, next.spared)
		return nil
	}
	if evictable, err := c.lookup.Evictable(ctx, next.pod); evictable.Never != "" || err != nil {
		c.verdicts[d.UID] = verdict{sum, false, all.now}
		return err
	}
	delete(c.verdicts, d.UID)
	if c.Mode == DryRun {
		c.verdicts[d.UID] = verdict{sum, false, all.now}
		c.sayOnce(d, next.pod, "MovePlanned", "Pod %s on node %s would be replaced by one on node %s or another one that is not in %s %q.",
			next.pod.Name, next.pod.Spec.NodeName, next.to, next.avoid.TopologyKey, *next.avoid.Value)
		return nil
	}
	if room.full(next.pod.Spec.NodeName) {
		c.verdicts[d.UID] = verdict{sum, false, all.now}
		return nil
	}
	if last, known := c.tried[d.UID]; known && last.cameToNothing(d, next.misplaced) {
		c.tried[d.UID] = attempt{until: all.now.Add(move.Remembered)}
		c.Events.Eventf(d, nil, corev1.EventTypeNormal, "RebalanceEnded", "Rebalance",
			"As many pods are misplaced as before the last one was replaced: the scheduler places them elsewhere than was planned. None is replaced for an hour.")
		return nil
	}
	m := move.New(next.pod, set, d, placementv1alpha1.MoveRebalance, all.histories[string(next.pod.UID)])
	m.Spec.Avoid = &next.avoid
	if made, err := all.count.Make(ctx, c.Client, m); !made || err != nil {
		return err
	}
	c.tried[d.UID] = attempt{generation: d.Generation, misplaced: next.misplaced}
	room.take(next.pod)
	klog.FromContext(ctx).V(2).Info("Made a Move", "pod", klog.KObj(next.pod), "from", next.pod.Spec.NodeName, "to", next.to, "avoid", next.avoid.TopologyKey+"="+*next.avoid.Value)
	return nil
}

// notice is an Event about a pod that is not replaced.
type notice struct {
	reason string
	pod    types.UID
}

// sayOnce writes an Event on a Deployment about one of its pods, unless it was the last one.
func (c *Controller) sayOnce(d *appsv1.Deployment, pod *corev1.Pod, reason, format string, args ...any) {
	if is := (notice{reason, pod.UID}); c.said[d.UID] != is {
		c.said[d.UID] = is
		c.Events.Eventf(d, pod, corev1.EventTypeNormal, reason, "Rebalance", format, args...)
	}
}
