// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/keylock"
)

// Name is the controller's name in logs and metrics.
const Name = "move"

// Kind is that of Moves.
const Kind = "Move"

// lookAgain is the time between two looks at a Move that has not ended. Moves are few, so that nothing else need tell when their
// objects change.
const lookAgain = time.Second

// lookAtSilent is the time between two looks at one that waits for a node, and lookEach what of it each of the Moves has: there may be many, and
// for hours. Each look is some requests, and together they must leave most of what a client may send to those that are under way.
const (
	lookAtSilent = 10 * time.Second
	lookEach     = 100 * time.Millisecond
)

// lookBeside is when a Move comes again that is passed over, because another one of its owner is being looked at, and lookBesideEach what of it each
// of the Moves has: a thousand a second come again at most. None waits with a worker: one request that takes long would hold all workers, if
// its owner has as many Moves. One that waits for something after its look does so for as long at least, so that each has its own.
const (
	lookBeside     = 100 * time.Millisecond
	lookBesideEach = time.Millisecond
)

// keptFor is how long a Move that has ended is kept, to be read. Those to rebalance are kept for longer: they are counted by the hour,
// and one that came to nothing keeps the Deployment from another for that long. Those to restart are the attempts that are counted.
func keptFor(move *placementv1alpha1.Move) time.Duration {
	if r := move.Spec.Reason; r == placementv1alpha1.MoveRebalance || r == placementv1alpha1.MoveRestart {
		return Remembered
	}
	return 10 * time.Minute
}

// Remembered is how long a Move that has ended counts as an attempt.
const Remembered = time.Hour

// safeToEvict has Cluster Autoscaler not mind that it does not know a pod's controller.
const safeToEvict = clusterview.SafeToEvictAnnotation

// Reconciler carries out Moves.
type Reconciler struct {
	// Client writes to the API server; API reads from it, and from no cache.
	Client client.Client
	API    client.Reader
	// Events tells the owners of pods what became of Moves.
	Events events.EventRecorder
	Clock  clock.PassiveClock
	// Drains reports whether a pod is replaced for its node, which somebody is about to remove. It is nil where none is.
	Drains func(ctx context.Context, pod *corev1.Pod, node *corev1.Node) (bool, error)

	meters *meters
	looked looks
	// sets are the ReplicaSets and StatefulSets at whose Moves somebody looks. Whether one may begin depends on the others of its set, and so does which pod
	// is handed back first.
	sets keylock.Locks[string]
}

// workers is how many Moves are looked at side by side. Each look is some ten requests one after the other: with one worker, 30 Moves waited for half a
// minute at an API server that was busy.
const workers = 8

// AddTo adds the controller to a manager.
func (r *Reconciler) AddTo(manager ctrl.Manager) error {
	if err := r.register(); err != nil {
		return fmt.Errorf("metrics of controller %s: %w", Name, err)
	}
	if err := ctrl.NewControllerManagedBy(manager).Named(Name).For(&placementv1alpha1.Move{}).WithOptions(options()).Complete(r); err != nil {
		return fmt.Errorf("adding controller %s: %w", Name, err)
	}
	return manager.Add(sweeping(r))
}

// options are those of the controller.
func options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		// A Move that holds a pod is not left alone for a quarter of an hour because requests have failed for one.
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, 10*time.Second),
	}
}

// Reconcile does the next step of a Move.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	known, move := &placementv1alpha1.Move{}, &placementv1alpha1.Move{}
	// A cache is good enough for what never changes, and one that is passed over takes no request.
	if err := r.Client.Get(ctx, request.NamespacedName, known); err != nil {
		r.looked.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner := known.Spec.Owner().UID
	if !r.sets.TryLock(owner) {
		return ctrl.Result{RequeueAfter: max(lookBeside, time.Duration(r.looked.len())*lookBesideEach)}, nil
	}
	defer r.sets.Unlock(owner)
	if err := r.API.Get(ctx, request.NamespacedName, move); err != nil {
		r.looked.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if move.Spec.Owner().UID != owner { // it was made anew for another one
		return ctrl.Result{RequeueAfter: lookBeside}, nil
	}
	isHeld := slices.Contains(move.Finalizers, finalizer)
	if move.DeletionTimestamp != nil && !isHeld {
		return ctrl.Result{}, nil
	}
	if ended := move.Status.EndedAt; ended != nil {
		r.looked.forget(request.NamespacedName)
		if released, err := r.release(ctx, move); released || err != nil {
			return ctrl.Result{RequeueAfter: time.Millisecond}, ignoreConflict(err)
		}
		if isHeld {
			return ctrl.Result{RequeueAfter: time.Millisecond}, ignoreConflict(r.patchMove(ctx, move, func(m *placementv1alpha1.Move) {
				m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == finalizer })
			}))
		}
		if left := keptFor(move) - r.Clock.Since(ended.Time); left > 0 {
			return ctrl.Result{RequeueAfter: left}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(r.Client.Delete(ctx, move, client.Preconditions{UID: &move.UID}))
	}
	o, err := read(ctx, r.API, move)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	if o.node != nil && !move.Spec.EvictsFirst() && clusterview.Silent(o.node) == nil && o.back(now) {
		if o.replacementStays, err = r.replacementStays(ctx, o); err != nil {
			return ctrl.Result{}, err
		}
	}
	f := o.facts(now)
	r.meter(o, &f, now)
	s := next(f)
	if written, err := r.write(ctx, move, s); written || err != nil {
		if err == nil && s.phase.Ended() {
			r.tell(o)
		}
		return ctrl.Result{RequeueAfter: time.Millisecond}, ignoreConflict(err)
	}
	again, priority := lookAgain, 0
	if f.silent && f.phase == placementv1alpha1.MoveWaiting {
		// Workers take those that are under way first.
		again, priority = max(lookAtSilent, time.Duration(r.looked.len())*lookEach), handler.LowPriority
	}
	return ctrl.Result{RequeueAfter: again, Priority: &priority}, ignoreConflict(r.act(ctx, o, s.action))
}

// release hands a pod back that a Move holds which has ended, and reports whether it does. A controller that was paused, and has lost its Lease
// meanwhile, may hand the pod over when another one has given the Move up. The pod would go with the Move, ready or not.
func (r *Reconciler) release(ctx context.Context, move *placementv1alpha1.Move) (bool, error) {
	pod := &corev1.Pod{}
	if found, err := get(ctx, r.API, pod, move.Namespace, move.Spec.Pod); err != nil || !found || !heldBy(pod, move) || pod.DeletionTimestamp != nil {
		return false, err
	}
	return true, r.patchPod(ctx, pod, func(pod *corev1.Pod) {
		replaceController(pod, replicaSetOf(move))
		restore(pod)
	})
}

// heldBy reports whether a pod's controller is a Move.
func heldBy(pod *corev1.Pod, move *placementv1alpha1.Move) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.UID == move.UID
}

// evictable reports whether a pod is one that its Move may evict.
func evictable(pod *corev1.Pod, move *placementv1alpha1.Move) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return heldBy(pod, move) || move.Spec.EvictsFirst() && owner != nil && string(owner.UID) == move.Spec.Owner().UID
}

// replicaSetOf is the ReplicaSet of a Move as an owner of its pod.
func replicaSetOf(move *placementv1alpha1.Move) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: move.Spec.ReplicaSet.Name, UID: types.UID(move.Spec.ReplicaSet.UID)}
}

// finalizer keeps a Move as long as its pod may be its own: the pod is handed back, and the other one goes.
const finalizer = placementv1alpha1.GroupName + "/pod"

// prepared reports that a Move has what New gives it. One that somebody else has made may not.
func prepared(move *placementv1alpha1.Move) bool {
	return slices.Contains(move.Finalizers, finalizer) && metav1.GetControllerOfNoCopy(move) != nil
}

// prepare has a Move wait for its pod at its end, and go with the Deployment: a disruption budget may keep the pod for ever when that is gone.
func (r *Reconciler) prepare(ctx context.Context, o *objects) error {
	return r.patchMove(ctx, o.move, func(m *placementv1alpha1.Move) {
		if !slices.Contains(m.Finalizers, finalizer) {
			m.Finalizers = append(m.Finalizers, finalizer)
		}
		if metav1.GetControllerOfNoCopy(m) == nil {
			m.OwnerReferences = append(slices.DeleteFunc(m.OwnerReferences, func(by metav1.OwnerReference) bool { return by.UID == o.deployment.UID }), controllerOf(o.deployment))
		}
	})
}

// patchMove changes a Move, unless it has changed since it was read.
func (r *Reconciler) patchMove(ctx context.Context, move *placementv1alpha1.Move, change func(*placementv1alpha1.Move)) error {
	after := move.DeepCopy()
	change(after)
	if err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(move, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("changing Move %s/%s: %w", move.Namespace, move.Name, err)
	}
	return nil
}

// ignoreConflict leaves it to the next look that an object has changed.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// write writes the step that is next, and reports whether it is another than was written before.
func (r *Reconciler) write(ctx context.Context, move *placementv1alpha1.Move, s step) (bool, error) {
	if move.Status.Phase == s.phase && move.Status.Message == s.message {
		return false, nil
	}
	before := move.DeepCopy()
	move.Status.Phase, move.Status.Message = s.phase, s.message
	if s.phase.Ended() {
		now := metav1.NewTime(r.Clock.Now())
		move.Status.EndedAt = &now
	}
	if err := r.Client.Status().Patch(ctx, move, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("writing the status of Move %s/%s: %w", move.Namespace, move.Name, err)
	}
	return true, nil
}

// outcomes are the reasons of the events that say how Moves ended.
var outcomes = map[placementv1alpha1.MovePhase]string{
	placementv1alpha1.MoveDone: "PodMoved", placementv1alpha1.MoveUndone: "MoveUndone", placementv1alpha1.MoveFailed: "MoveFailed",
}

// tell counts a Move that has ended, and says so in an event on the Deployment, or on what else the pod is of.
func (r *Reconciler) tell(o *objects) {
	m := o.move
	r.meters.ended.WithLabelValues(string(m.Spec.Reason), string(m.Status.Phase)).Inc()
	var of client.Object
	switch {
	case o.deployment != nil:
		of = o.deployment
	case o.statefulSet != nil:
		of = o.statefulSet
	case o.set != nil && m.Spec.EvictsFirst():
		of = o.set
	default:
		return
	}
	kind := corev1.EventTypeNormal
	back := m.Spec.Reason == placementv1alpha1.MoveDisconnect && m.Status.Phase == placementv1alpha1.MoveUndone
	if m.Status.Phase != placementv1alpha1.MoveDone && !back {
		kind = corev1.EventTypeWarning
	}
	r.Events.Eventf(of, m, kind, outcomes[m.Status.Phase], "Move", "Pod %s, for the reason %s: %s.", m.Spec.Pod.Name, m.Spec.Reason, m.Status.Message)
}

// act makes the one request of a step.
func (r *Reconciler) act(ctx context.Context, o *objects, a action) error {
	switch a {
	case handOver:
		if !prepared(o.move) {
			return r.prepare(ctx, o)
		}
		return r.patchPod(ctx, o.pod, func(pod *corev1.Pod) {
			replaceController(pod, metav1.OwnerReference{
				APIVersion: placementv1alpha1.SchemeGroupVersion.String(), Kind: Kind, Name: o.move.Name, UID: o.move.UID,
			})
			// Not as its controller: with a Move that is removed together with its finalizer, or with what depends on it, the garbage collector would
			// remove the pod, ready or not. It goes by all owners, and the ReplicaSet takes back a pod that has no controller.
			pod.OwnerReferences = append(pod.OwnerReferences, replicaSetOf(o.move))
			if _, there := pod.Annotations[safeToEvict]; !there {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, safeToEvict, "true")
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, clusterview.MadeEvictableAnnotation, "true")
			}
		})
	case handBack:
		return r.patchPod(ctx, o.pod, func(pod *corev1.Pod) {
			replaceController(pod, replicaSetOf(o.move))
			setCost(pod, keptCost) // whatever is ready, the ReplicaSet is to keep this one
		})
	case markExtra:
		return r.patchPod(ctx, o.extra, func(pod *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, clusterview.RemovedForMoveAnnotation, o.move.Name)
			setCost(pod, goneCost)
		})
	case restoreExtra:
		return r.patchPod(ctx, o.extra, restore)
	case restoreCost:
		return r.patchPod(ctx, o.pod, restore)
	case evict:
		return r.evict(ctx, o.move)
	case wait:
		return nil
	}
	return errors.New("there is no such action")
}

// evict evicts the pod of a Move, if the Move holds it, or is to evict it first and its owner has it. A controller that was paused, and has lost its Lease meanwhile, must not evict a pod that was
// handed back, so it evicts the pod as it has just read it. It reads it anew, because the API server takes an eviction off the
// disruption budget before it sees that the pod has changed, and gives it back after two minutes only.
func (r *Reconciler) evict(ctx context.Context, move *placementv1alpha1.Move) error {
	pod := &corev1.Pod{}
	if found, err := get(ctx, r.API, pod, move.Namespace, move.Spec.Pod); err != nil || !found || !evictable(pod, move) {
		return err
	}
	if move.Spec.EvictsFirst() {
		// Nothing on such a pod says that its Move was deleted or has ended meanwhile, and another pod of the workload may be away by now.
		now := &placementv1alpha1.Move{}
		found, err := get(ctx, r.API, now, move.Namespace, placementv1alpha1.ObjectReference{Name: move.Name, UID: string(move.UID)})
		if err != nil || !found || now.ResourceVersion != move.ResourceVersion {
			return err
		}
	}
	err := r.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}},
	})
	if apierrors.IsTooManyRequests(err) {
		return nil // a disruption budget does not allow it yet
	}
	return err
}

// patchPod changes a pod, unless it has changed since it was read.
func (r *Reconciler) patchPod(ctx context.Context, pod *corev1.Pod, change func(*corev1.Pod)) error {
	after := pod.DeepCopy()
	change(after)
	if err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("changing pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// replaceController puts a controller in place of the pod's. The garbage collector keeps the pod as long as the controller is there. It
// need not wait for the pod: that would take the right to change finalizers, on clusters that ask for it.
func replaceController(pod *corev1.Pod, by metav1.OwnerReference) {
	by.Controller = new(true)
	pod.OwnerReferences = append(slices.DeleteFunc(slices.Clone(pod.OwnerReferences), func(o metav1.OwnerReference) bool {
		return o.Controller != nil && *o.Controller || o.UID == by.UID
	}), by)
}
