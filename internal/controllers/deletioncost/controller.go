// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package deletioncost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/syncs"
	"github.com/espalier-scheduler/espalier/internal/scaledown"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/ordinal"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// every is the time between two looks.
const every = 5 * time.Second

// At most perSecond pods are changed in a second, in bursts of at most burst. This goes by the machine's clock.
const (
	perSecond = 5
	burst     = 50
)

// Controller repairs the deletion costs of pods.
type Controller struct {
	// Client lists from a cache and changes pods.
	Client client.Client
	Clock  clock.PassiveClock
	Options

	limit flowcontrol.PassiveRateLimiter
	// seen has the last sum of each ReplicaSet's pods, and since when it has been that.
	seen map[types.UID]state
}

type state struct {
	sum   uint64
	since time.Time
}

var seed = maphash.MakeSeed()

// Start looks at all pods until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	c.reset()
	syncs.Repeat(ctx, "deletioncost", every, "Repairing deletion costs", c.look)
	return nil
}

// reset makes what look needs: a full budget of changes, and no ReplicaSet seen, so that each has to be quiet for the whole time
// again. Tests call look without Start.
func (c *Controller) reset() {
	c.limit, c.seen = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(perSecond, burst, c.Clock), make(map[types.UID]state)
}

// look repairs the costs of ReplicaSets whose pods have been the same for long enough.
func (c *Controller) look(ctx context.Context) error {
	sets, err := c.pods(ctx)
	if err != nil {
		return err
	}
	now, seen := c.Clock.Now(), make(map[types.UID]state, len(sets))
	trees := make(map[string]*simulation.Tree)
	var errs []error
	for uid, pods := range sets {
		s := state{sumOf(pods), now}
		if before, known := c.seen[uid]; known && before.sum == s.sum {
			s.since = before.since
		}
		seen[uid] = s
		if now.Sub(s.since) < c.Quiet || !c.ours(pods) {
			continue
		}
		errs = append(errs, c.repair(ctx, pods, trees))
	}
	c.seen = seen
	return errors.Join(errs...)
}

// pods are those that stay on a node, by their ReplicaSet, the oldest first.
func (c *Controller) pods(ctx context.Context) (map[types.UID][]*corev1.Pod, error) {
	var namespaces corev1.NamespaceList
	if err := c.Client.List(ctx, &namespaces, client.MatchingLabelsSelector{Selector: c.Namespaces}); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	sets := make(map[types.UID][]*corev1.Pod)
	for i := range namespaces.Items {
		var list corev1.PodList
		if err := c.Client.List(ctx, &list, client.InNamespace(namespaces.Items[i].Name), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing pods: %w", err)
		}
		for j := range list.Items {
			p := &list.Items[j]
			ended := p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
			if owner := metav1.GetControllerOfNoCopy(p); !ended && owner != nil && owner.Kind == "ReplicaSet" && slices.Contains(c.Schedulers, p.Spec.SchedulerName) {
				sets[owner.UID] = append(sets[owner.UID], p)
			}
		}
	}
	for _, pods := range sets {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
	}
	return sets, nil
}

// sumOf tells states of a ReplicaSet apart: which pods it has, and where.
func sumOf(pods []*corev1.Pod) (sum uint64) {
	for _, p := range pods {
		sum += maphash.String(seed, string(p.UID)+" "+p.Spec.NodeName)
	}
	return sum
}

// ours reports that all pods of a ReplicaSet have nodes, that all costs are ours, and that there are some if these are only repaired. While a pod is
// moved its ReplicaSet is left alone.
func (c *Controller) ours(pods []*corev1.Pod) bool {
	some := c.Mode == Backfill
	for _, p := range pods {
		n, foreign := scaledown.Read(p)
		_, moving := p.Annotations[clusterview.CostBeforeMoveAnnotation]
		if foreign || moving || p.Spec.NodeName == "" {
			return false
		}
		some = some || n > 0
	}
	return some
}

// repair gives the pods of a ReplicaSet the costs that they should have.
func (c *Controller) repair(ctx context.Context, pods []*corev1.Pod, trees map[string]*simulation.Tree) error {
	levels, ok := clusterview.LevelsPlacedBy(pods[len(pods)-1].Annotations[clusterview.PlacedByAnnotation])
	if !ok {
		return nil
	}
	key := level.Format(levels)
	if trees[key] == nil {
		t, err := c.tree(ctx, levels)
		if err != nil {
			return err
		}
		trees[key] = t
	}
	type branch struct {
		value string
		share int32
	}
	branches := make(map[branch][]*corev1.Pod)
	for _, p := range pods {
		if value, share, ok := trees[key].First(p.Spec.NodeName); ok {
			branches[branch{value, share}] = append(branches[branch{value, share}], p)
		}
	}
	var errs []error
	for b, of := range branches {
		numbers := make([]int32, len(of))
		for i, p := range of {
			numbers[i], _ = scaledown.Read(p)
		}
		for i, n := range ordinal.Repair(numbers) {
			if n == numbers[i] {
				continue
			}
			if !c.limit.TryAccept() {
				return errors.Join(errs...) // the next look goes on
			}
			errs = append(errs, c.write(ctx, of[i], ordinal.Ordinal{N: n, Share: scaledown.ShareOf(&levels[0], b.share)}))
		}
	}
	return errors.Join(errs...)
}

// tree has all nodes, and no pods.
func (c *Controller) tree(ctx context.Context, levels []level.Level) (*simulation.Tree, error) {
	var list corev1.NodeList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	nodes := make([]placement.Node, len(list.Items))
	for i := range list.Items {
		n := &list.Items[i]
		nodes[i] = placement.Node{Name: n.Name, Values: clusterview.Values(n, levels)}
		nodes[i].Usage.CPU.Allocatable = n.Status.Allocatable.Cpu().MilliValue()
		nodes[i].Usage.Memory.Allocatable = n.Status.Allocatable.Memory().Value()
	}
	return simulation.New(levels, nodes...), nil
}

// write gives a pod another cost, unless the pod has changed meanwhile.
func (c *Controller) write(ctx context.Context, pod *corev1.Pod, o ordinal.Ordinal) error {
	after := pod.DeepCopy()
	for key, value := range scaledown.Annotations(o) {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, key, value)
	}
	err := c.Client.Patch(ctx, after, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the next look sees what it is now
	}
	if err != nil {
		return fmt.Errorf("changing the deletion cost of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
