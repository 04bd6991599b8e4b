// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package disconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/governing"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/controllers/syncs"
	"github.com/espalier-scheduler/espalier/pkg/placement/reconnect"
)

// every is the time between two looks. A pod is deleted 300 seconds after its node got the taint, if nobody says otherwise.
const every = 2 * time.Second

// mostWaiting bounds the Moves that wait for nodes. Nothing else does, as they may wait for hours and not count as under way. Pods beyond it are left
// to Kubernetes as those that are too many at once.
const mostWaiting = 1000

// Options are what a Controller goes by.
type Options struct {
	// Schedulers are those whose pods are kept, by schedulerName.
	Schedulers []string
	// AtOnce bounds the Moves that have not ended, of all reasons, but for those that wait for a node.
	AtOnce int
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error { return move.ValidateAtOnce(o.AtOnce) }

// Controller keeps pods whose nodes do not answer, and makes Moves for them.
type Controller struct {
	// Client lists from a cache, changes pods and makes Moves. API reads from the API server.
	Client client.Client
	API    client.Reader
	// Events tells StatefulSets that their pods are kept, and not replaced.
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Options

	policies governing.Reader
	// idle says that no pod was kept at the last look.
	idle bool
	// latest is the latest time at which a node has reported or was found silent, and looks is how often nodes have been looked at since it changed.
	latest time.Time
	looks  int
}

// Start looks at the nodes until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	syncs.Repeat(ctx, "disconnect", every, "Looking for pods whose nodes do not answer", c.look)
	return nil
}

// look does for each pod what is due.
func (c *Controller) look(ctx context.Context) error {
	silent, now, err := c.silent(ctx)
	if err != nil || len(silent) == 0 && c.idle {
		return err
	}
	policies, err := c.policies.Read(ctx, c.Client)
	if err != nil {
		return err
	}
	pods, err := c.pods(ctx, silent)
	if err != nil {
		return err
	}
	c.idle = len(pods) == 0
	var due []*subject
	var errs []error
	for _, pod := range pods {
		policy, since := policies.Of(pod), silent[pod.Spec.NodeName]
		if unknown(policy) && !since.IsZero() {
			continue // it stays as it is: one that is kept would be deleted at once, and none would be made in its place
		}
		one, isDue, err := c.keep(ctx, pod, ruleOf(policy), since, now)
		errs = append(errs, err)
		if isDue {
			due = append(due, one)
		}
	}
	return errors.Join(append(errs, c.replace(ctx, due))...)
}

// Index has a cache find pods by their nodes, and those that are kept. A look at all pods would take long on a large cluster, and a node may
// be silent for days.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for field, of := range indices {
		if err := indexer.IndexField(ctx, &corev1.Pod{}, field, of); err != nil {
			return fmt.Errorf("indexing pods by %s: %w", field, err)
		}
	}
	return nil
}

const (
	byNode = "spec.nodeName"
	isKept = "kept"
)

var indices = map[string]client.IndexerFunc{
	byNode: func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} },
	isKept: func(o client.Object) []string { return []string{strconv.FormatBool(kept(o.(*corev1.Pod)))} },
}

// pods returns those on silent nodes and those that are kept, but for those that have ended or are on no node, and those of other schedulers: another
// controller may keep them.
func (c *Controller) pods(ctx context.Context, silent map[string]time.Time) (pods []*corev1.Pod, err error) {
	list := func(field, value string, also func(*corev1.Pod) bool) error {
		var found corev1.PodList
		if err := c.Client.List(ctx, &found, client.MatchingFields{field: value}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing pods by %s: %w", field, err)
		}
		for i := range found.Items {
			p := &found.Items[i]
			ended := p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
			if !ended && p.Spec.NodeName != "" && slices.Contains(c.Schedulers, p.Spec.SchedulerName) && also(p) {
				pods = append(pods, p)
			}
		}
		return nil
	}
	for node := range silent {
		if err := list(byNode, node, func(*corev1.Pod) bool { return true }); err != nil {
			return nil, err
		}
	}
	err = list(isKept, "true", func(p *corev1.Pod) bool {
		_, is := silent[p.Spec.NodeName]
		return !is
	})
	return pods, err
}

// silent returns the nodes that do not answer, and since when; and what time it is.
func (c *Controller) silent(ctx context.Context) (silent map[string]time.Time, now time.Time, err error) {
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, now, fmt.Errorf("listing nodes: %w", err)
	}
	silent, now = make(map[string]time.Time), c.Clock.Now()
	var latest time.Time
	for i := range nodes.Items {
		n := &nodes.Items[i]
		at := clusterview.LastReport(n)
		if t := clusterview.Silent(n); t != nil {
			silent[n.Name] = ptr.Deref(t.TimeAdded, metav1.NewTime(now)).Time
			if t.TimeAdded != nil && t.TimeAdded.After(at) {
				at = t.TimeAdded.Time
			}
		}
		if at.After(latest) {
			latest = at
		}
	}
	return silent, c.atMost(latest, now), nil
}

// atMost is the time, by the controller's clock, but no later than nodes say: the last that one has reported, by its own clock, or was found
// silent, and what has gone by since. Where the clock jumps ahead, all pods that are kept would be lost at once.
func (c *Controller) atMost(latest, now time.Time) time.Time {
	if c.looks++; !latest.Equal(c.latest) {
		c.latest, c.looks = latest, 0
	}
	// Looks are counted, as no node may report: some that are played, and all of them where only Leases are renewed.
	if most := latest.Add(clusterview.ReportsWithin + time.Duration(c.looks)*every); !latest.IsZero() && now.After(most) {
		return most
	}
	return now
}

// keep has a pod tolerate that its node does not answer for as long as it should now. Since is zero if the node does. It reports
// whether another pod is to be made in its place.
func (c *Controller) keep(ctx context.Context, pod *corev1.Pod, says *rule, since, now time.Time) (is *subject, due bool, err error) {
	if is, err = c.subject(ctx, pod, says); err != nil {
		return is, false, err
	}
	state := reconnect.Reconnecting // its node answers, or it is left to Kubernetes
	if is.rule != nil && !since.IsZero() {
		state = reconnect.Classify(is.state(since), now)
	}
	switch state {
	case reconnect.Disconnecting:
		var changed bool
		if changed, err = c.change(ctx, pod, func(p *corev1.Pod) bool { return tolerate(p, nil) }); changed && is.named {
			c.recordKept(pod, since.Add(is.rule.lostAfter))
		}
	case reconnect.Expiring:
		_, err = c.change(ctx, pod, func(p *corev1.Pod) bool { return tolerate(p, new(int64)) })
	case reconnect.Reconnecting:
		_, err = c.change(ctx, pod, restore)
	case reconnect.Untouched:
		due = is.deployment != nil && stays(pod) && now.Sub(since) >= is.rule.replaceAfter
		if due && kept(pod) && now.Sub(since) >= is.keptWithoutMove() {
			_, err = c.change(ctx, pod, func(p *corev1.Pod) bool { return tolerate(p, new(int64)) })
		}
	case reconnect.Lost, reconnect.Ignored, reconnect.Migrating:
		// It has not started, or is on its way out: Kubernetes deletes it.
	}
	return is, due, err
}

// change changes a pod, unless it has changed since it was read. It reports whether it did.
func (c *Controller) change(ctx context.Context, pod *corev1.Pod, change func(*corev1.Pod) bool) (bool, error) {
	after := pod.DeepCopy()
	if !change(after) {
		return false, nil
	}
	err := c.Client.Patch(ctx, after, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil // the next look sees what has become of it
	}
	if err != nil {
		return false, fmt.Errorf("changing the tolerations of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return true, nil
}

// recordKept writes an Event on the StatefulSet of a pod that is kept. The pod must have a controller.
func (c *Controller) recordKept(pod *corev1.Pod, until time.Time) {
	owner := metav1.GetControllerOfNoCopy(pod)
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: owner.Name, UID: owner.UID}}
	c.Events.Eventf(set, pod, corev1.EventTypeWarning, "PodKept", "Disconnect",
		"Pod %s stays on node %s, which does not answer. No other pod can have its name meanwhile, so that none takes its place. If the node has not answered by %s, the pod is deleted, and goes when the node answers or is removed.",
		pod.Name, pod.Spec.NodeName, until.UTC().Format(time.RFC3339))
}

// replace makes Moves for the pods in whose places others are to be made, as far as the budget goes.
func (c *Controller) replace(ctx context.Context, due []*subject) error {
	if len(due) == 0 {
		return nil
	}
	count := move.NewCount()
	var moves placementv1alpha1.MoveList
	if err := c.API.List(ctx, &moves); err != nil {
		return fmt.Errorf("listing Moves: %w", err)
	}
	histories, budget, left := move.Histories(moves.Items), move.BudgetOf(c.AtOnce, moves.Items), mostWaiting-begun(moves.Items)
	slices.SortFunc(due, func(a, b *subject) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	turns := move.NewTurns(due, func(s *subject) *corev1.Pod { return s.pod }, moves.Items, histories)
	var errs []error
	for one := range turns.All() {
		if budget.Spent() || left < 1 || count.Stale() {
			break
		}
		history := histories[string(one.pod.UID)]
		if history.Fails(c.Clock.Now()) {
			continue
		}
		m := move.New(one.pod, one.set, one.deployment, placementv1alpha1.MoveDisconnect, history)
		m.Spec.Keep = one.rule.keep
		made, err := count.Make(ctx, c.Client, m)
		if made {
			budget.Take(one.set)
			turns.Made(one)
			left--
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// begun counts the Moves that wait for nodes, or are about to.
func begun(moves []placementv1alpha1.Move) (n int) {
	for i := range moves {
		if m := &moves[i]; m.Spec.Reason == placementv1alpha1.MoveDisconnect && !m.Status.Phase.Ended() {
			n++
		}
	}
	return n
}
