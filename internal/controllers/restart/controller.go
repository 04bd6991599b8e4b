// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/governing"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/controllers/suspect"
	"github.com/espalier-scheduler/espalier/internal/controllers/syncs"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/reschedule"
)

// every is the time between two looks. A scheduler writes its record every two seconds at the most.
const every = 2 * time.Second

// Controller makes Moves for pods that fail on nodes that are faulty for them.
type Controller struct {
	// Client lists from a cache and makes Moves. API reads from the API server.
	Client client.Client
	API    client.Reader
	Events events.EventRecorder
	Clock  clock.PassiveClock
	Options

	policies governing.Reader
	lookup   move.Lookup
	// failing remembers, by UID, since when each pod fails.
	failing failing
}

// Start looks at the pods until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	c.failing = make(failing)
	syncs.Repeat(ctx, "restart", every, "Looking for pods that fail on faulty nodes", c.look)
	return nil
}

// faulty are the nodes that are marked, by revision.
type faulty map[failure.Revision]sets.Set[string]

// candidate is a pod that fails on a node that is faulty for some. Whether it is for its own revision is known with its owner, which is read when its turn
// comes: a bad node may fail pods of hundreds, of which a few are moved at once.
type candidate struct {
	pod   *corev1.Pod
	owner move.Owner
	since time.Time
}

// look makes the Moves that may be made now.
func (c *Controller) look(ctx context.Context) error {
	marked, unread := c.marked(ctx)
	if len(marked) == 0 {
		return unread
	}
	candidates, err := c.candidates(ctx, marked)
	if err != nil || len(candidates) == 0 {
		return errors.Join(unread, err)
	}
	count := move.NewCount()
	var moves placementv1alpha1.MoveList
	if err := c.API.List(ctx, &moves); err != nil {
		return errors.Join(unread, fmt.Errorf("listing Moves: %w", err))
	}
	histories, budget := move.Histories(moves.Items), move.BudgetOf(c.AtOnce, moves.Items)
	turns := move.NewTurns(candidates, func(one candidate) *corev1.Pod { return one.pod }, moves.Items, histories)
	now := c.Clock.Now()
	errs := []error{unread}
	for one := range turns.All() {
		if budget.Spent() || count.Stale() {
			break
		}
		history := histories[string(one.pod.UID)]
		if history.Fails(now) {
			continue
		}
		if ok, err := c.readOwner(ctx, &one, marked); !ok || err != nil {
			errs = append(errs, err)
			continue
		}
		due, allowed := c.Policy.Next(c.attempts(moves.Items, &one.owner), history.FailingSince(one.since))
		if !allowed || due.After(now) {
			c.lookup.RefuseUntil(one.pod, due)
			continue
		}
		if budget.SpentFor(&one.owner) {
			continue
		}
		made, err := c.move(ctx, &one, history, count)
		if made {
			budget.TakeFor(&one.owner)
			turns.Made(one)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// marked reads the records. One that cannot be read holds up no pods of the other schedulers: the error is beside what the others say.
func (c *Controller) marked(ctx context.Context) (faulty, error) {
	marked := make(faulty)
	var unread []error
	for _, scheduler := range c.Schedulers {
		r, err := suspect.ReadRecord(ctx, c.API, c.Records, scheduler)
		if err != nil {
			unread = append(unread, err)
			continue
		}
		for i := range r.Revisions {
			if is := &r.Revisions[i]; len(is.Marked) > 0 {
				of := failure.Revision{Workload: is.Workload, Revision: is.Revision}
				marked[of] = sets.New(is.Marked...).Union(marked[of])
			}
		}
	}
	return marked, errors.Join(unread...)
}

// candidates are the pods that fail on nodes that are faulty for some, those that have failed for longest first.
func (c *Controller) candidates(ctx context.Context, marked faulty) ([]candidate, error) {
	var namespaces corev1.NamespaceList
	if err := c.Client.List(ctx, &namespaces, client.MatchingLabelsSelector{Selector: c.Namespaces}); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	nodes := sets.New[string]()
	for _, of := range marked {
		nodes = nodes.Union(of)
	}
	policies, err := c.policies.Read(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	now := c.Clock.Now()
	c.lookup.Begin(c.API, c.Events, now)
	var candidates []candidate
	for i := range namespaces.Items {
		var pods corev1.PodList
		if err := c.Client.List(ctx, &pods, client.InNamespace(namespaces.Items[i].Name), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing pods: %w", err)
		}
		for j := range pods.Items {
			pod := &pods.Items[j]
			since, fails := failingSince(pod, now)
			since = c.failing.since(pod.UID, since, fails, now)
			if !fails || !nodes.Has(pod.Spec.NodeName) || !slices.Contains(c.Schedulers, pod.Spec.SchedulerName) {
				continue
			}
			if c.lookup.Rests(pod) || !policies.Of(pod).Restarts(c.Mode == Enabled) {
				continue
			}
			candidates = append(candidates, candidate{pod: pod, since: since})
		}
	}
	c.failing.forget(now)
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	return candidates, nil
}

// readOwner reads what a candidate is of. It is false, and the pod rests, if the node is not faulty for its revision.
func (c *Controller) readOwner(ctx context.Context, one *candidate, marked faulty) (ok bool, err error) {
	if one.owner, ok, err = c.lookup.Owner(ctx, one.pod); !ok || err != nil {
		return false, err
	}
	if ok = marked[revisionOf(one)].Has(one.pod.Spec.NodeName); !ok {
		c.lookup.Refuse(one.pod)
	}
	return ok, nil
}

// revisionOf is how the records name the revision of a pod. Where a label names the workload, a hash is one of its owner's.
func revisionOf(c *candidate) failure.Revision {
	kind, top := c.owner.Top()
	kind += "." + appsv1.GroupName
	hash := cmp.Or(c.pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey], c.pod.Labels[appsv1.ControllerRevisionHashLabelKey])
	if name := c.pod.Labels[clusterview.WorkloadLabel]; name != "" {
		w := clusterview.Workload{Namespace: c.pod.Namespace, Kind: clusterview.KindLabel, Name: name}
		return failure.Revision{Workload: w.String(), Revision: kind + "/" + top.GetName() + "/" + hash}
	}
	w := clusterview.Workload{Namespace: c.pod.Namespace, Kind: kind, Name: top.GetName()}
	return failure.Revision{Workload: w.String(), Revision: hash}
}

// attempts are the Moves to restart pods of an owner, the oldest first. What each has waited for follows from those before it.
func (c *Controller) attempts(moves []placementv1alpha1.Move, of *move.Owner) []reschedule.Event {
	_, top := of.Top()
	var made []time.Time
	for i := range moves {
		m := &moves[i]
		// One that was not begun has tried nothing.
		if owner := metav1.GetControllerOfNoCopy(m); owner != nil && owner.UID == top.GetUID() && m.Spec.Reason == placementv1alpha1.MoveRestart && m.Status.Phase != placementv1alpha1.MoveFailed {
			made = append(made, m.CreationTimestamp.Time)
		}
	}
	slices.SortFunc(made, time.Time.Compare)
	p := c.Policy
	p.Unlimited = true
	var events []reschedule.Event
	for _, at := range made {
		// Several pods that fail at once are one attempt.
		if last := len(events) - 1; last >= 0 && at.Sub(events[last].At) < c.Policy.Delay {
			continue
		}
		due, _ := p.Next(events, at)
		events = append(events, reschedule.Event{At: at, Delay: due.Sub(at)})
	}
	return events
}

// move makes a Move, unless nobody can evict the pod. One that evicts first would wait for its budget as one of those that may be moved at once, and a
// budget that wants each pod of a workload never lets one go that fails. The replacement must be on another node.
func (c *Controller) move(ctx context.Context, one *candidate, history move.History, count *move.Count) (made bool, err error) {
	evictable, err := c.lookup.Evictable(ctx, one.pod)
	if evictable.Never != "" || err != nil || evictable.Blocked && one.owner.EvictFirst {
		return false, err
	}
	m := one.owner.Move(one.pod, placementv1alpha1.MoveRestart, history)
	if refuses, err := c.lookup.RefusesFirst(ctx, m, one.pod, &one.owner); refuses || err != nil {
		return false, err
	}
	host, ok, err := move.HostOf(ctx, c.API, one.pod)
	if !ok || err != nil {
		return false, err
	}
	m.Spec.Avoid = host
	return count.Make(ctx, c.Client, m)
}
