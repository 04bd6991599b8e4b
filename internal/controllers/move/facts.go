// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// objects are those that a Move is about, nil where they are gone. They are read from the API server, and not from a cache: a Move is
// rare, and must not act on what was.
type objects struct {
	move *placementv1alpha1.Move
	pod  *corev1.Pod
	set  *appsv1.ReplicaSet
	// deployment is the one that the ReplicaSet is of.
	deployment *appsv1.Deployment
	// pods are those of the ReplicaSet that are not being deleted.
	pods []corev1.Pod
	// extra is the one that has come in the place of the pod, nil for none.
	extra *corev1.Pod
	// othersTurn says that one is marked as the one to go for another Move, which is not at its end.
	othersTurn bool
	// astray says that one that has come since is in the domain that it must not be in.
	astray bool
	// beside counts the other Moves of the ReplicaSet that are replacing a pod.
	beside int
	// never is why the pod would not be evicted even with another one ready in its place, "" if it would.
	never string
	// node is that of the pod, for a Move with the reason Disconnect, or one that evicts first; nil if it is gone.
	node *corev1.Node
	// replacementStays says which of the two does, if the pod is back.
	replacementStays bool
	// statefulSet is the one that the pod is of, nil if it is of a ReplicaSet.
	statefulSet *appsv1.StatefulSet
}

// read reads the objects of a Move.
func read(ctx context.Context, api client.Reader, move *placementv1alpha1.Move) (*objects, error) {
	o := &objects{move: move}
	pod, set, deployment := &corev1.Pod{}, &appsv1.ReplicaSet{}, &appsv1.Deployment{}
	found, err := get(ctx, api, pod, move.Namespace, move.Spec.Pod)
	if err != nil {
		return nil, err
	}
	if found {
		o.pod = pod
	}
	if move.Spec.StatefulSet.UID != "" {
		err := o.readStatefulSet(ctx, api)
		return o, err
	}
	if found, err = get(ctx, api, set, move.Namespace, move.Spec.ReplicaSet); err != nil || !found {
		return o, err
	}
	o.set = set
	if owner := metav1.GetControllerOfNoCopy(set); owner != nil && owner.Kind == "Deployment" {
		if found, err = get(ctx, api, deployment, move.Namespace, placementv1alpha1.ObjectReference{Name: owner.Name, UID: string(owner.UID)}); err != nil {
			return nil, err
		}
		if found {
			o.deployment = deployment
		}
	}
	if err := o.readPods(ctx, api, set, set.Spec.Selector); err != nil {
		return nil, err
	}
	if move.Spec.EvictsFirst() {
		err := o.readForFirst(ctx, api)
		return o, err
	}
	o.extra = o.findExtra()
	if err := o.readTurn(ctx, api); err != nil {
		return nil, err
	}
	if err := o.readBeside(ctx, api); err != nil {
		return nil, err
	}
	if err := o.readBudgets(ctx, api); err != nil {
		return nil, err
	}
	if err := o.readNode(ctx, api); err != nil {
		return nil, err
	}
	if err := o.readAstray(ctx, api); err != nil {
		return nil, err
	}
	return o, nil
}

// readPods reads those of a ReplicaSet or of a StatefulSet that are not being deleted.
func (o *objects) readPods(ctx context.Context, api client.Reader, of client.Object, selected *metav1.LabelSelector) error {
	selector, err := metav1.LabelSelectorAsSelector(selected)
	if err != nil {
		return fmt.Errorf("selector of %s/%s: %w", of.GetNamespace(), of.GetName(), err)
	}
	var list corev1.PodList
	if err := api.List(ctx, &list, client.InNamespace(of.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing the pods of %s/%s: %w", of.GetNamespace(), of.GetName(), err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		ended := p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if owner := metav1.GetControllerOfNoCopy(p); !ended && owner != nil && owner.UID == of.GetUID() {
			o.pods = append(o.pods, *p)
		}
	}
	return nil
}

// readBeside counts the other Moves of the ReplicaSet that have begun, before this one does. Those who make Moves look at the same bound, but
// each for itself.
func (o *objects) readBeside(ctx context.Context, api client.Reader) error {
	if o.move.Spec.Reason == placementv1alpha1.MoveDisconnect || !toBegin(o.move.Status.Phase) && !o.move.Spec.EvictsFirst() {
		return nil
	}
	var all placementv1alpha1.MoveList
	if err := api.List(ctx, &all, client.InNamespace(o.move.Namespace)); err != nil {
		return fmt.Errorf("listing the Moves of namespace %s: %w", o.move.Namespace, err)
	}
	o.beside = beside(o.move, all.Items)
	return nil
}

// beside counts the other Moves of a Move's owner that have begun.
func beside(move *placementv1alpha1.Move, all []placementv1alpha1.Move) (n int) {
	for i := range all {
		m := &all[i]
		begun := Busy(m) && !toBegin(m.Status.Phase) || m.Status.Phase == placementv1alpha1.MoveHandingOver
		if m.UID != move.UID && m.Spec.Owner().UID == move.Spec.Owner().UID && begun && m.Spec.Reason != placementv1alpha1.MoveDisconnect {
			n++
		}
	}
	return n
}

// toBegin reports that the pod of a Move is still its ReplicaSet's, or may be.
func toBegin(phase placementv1alpha1.MovePhase) bool {
	return phase == "" || phase == placementv1alpha1.MovePlanned || phase == placementv1alpha1.MoveHandingOver
}

// readBudgets reads whether the pod can be evicted, before it is handed over: while a Move holds a pod, Kubernetes may not be able to tell.
func (o *objects) readBudgets(ctx context.Context, api client.Reader) error {
	if o.pod == nil || o.move.Spec.Reason == placementv1alpha1.MoveDisconnect || !toBegin(o.move.Status.Phase) {
		return nil
	}
	all, err := budgetsIn(ctx, api, o.move.Namespace)
	if apierrors.IsForbidden(err) {
		return nil // a controller that only keeps pods of nodes that do not answer may not read them
	}
	o.never = evictableBy(all, o.pod).Never
	return err
}

// readNode reads the node of a pod that may come back, or is evicted first.
func (o *objects) readNode(ctx context.Context, api client.Reader) error {
	if o.move.Spec.Reason != placementv1alpha1.MoveDisconnect && !o.move.Spec.EvictsFirst() || o.pod == nil {
		return nil
	}
	var err error
	o.node, err = nodeOf(ctx, api, o.pod)
	return err
}

// readAstray looks where the pods are that have come since the Move was made. The one of a node that is about to be removed is no better off on
// another one that is for the same reason: it would be moved from node to node.
func (o *objects) readAstray(ctx context.Context, api client.Reader) error {
	avoid := o.move.Spec.Avoid
	phase := o.move.Status.Phase
	if avoid == nil || o.pod == nil || phase != placementv1alpha1.MoveHandingOver && phase != placementv1alpha1.MoveReplacing {
		return nil
	}
	leaving := ""
	if from, err := nodeOf(ctx, api, o.pod); err != nil {
		return err
	} else if from != nil && o.move.Spec.Reason == placementv1alpha1.MoveDrain {
		leaving = clusterview.Leaving(from)
	}
	inside, outside := false, false
	for i := range o.pods {
		p := &o.pods[i]
		if p.Spec.NodeName == "" || p.CreationTimestamp.Before(&o.move.CreationTimestamp) {
			continue
		}
		node, err := nodeOf(ctx, api, p)
		switch {
		case err != nil:
			return err
		case node == nil: // it is in no domain any more
		case clusterview.DomainOf(node, avoid.TopologyKey) == ptr.Deref(avoid.Value, ""), leaving != "" && clusterview.Leaving(node) == leaving:
			inside = true
		default:
			outside = true
		}
	}
	// Others may have come meanwhile, for a Deployment that grows. As long as one is elsewhere, it is the replacement.
	o.astray = inside && !outside
	return nil
}

// nodeOf reads the node of a pod, nil if it is gone or the pod has none.
func nodeOf(ctx context.Context, api client.Reader, pod *corev1.Pod) (*corev1.Node, error) {
	if pod.Spec.NodeName == "" {
		return nil, nil //nolint:nilnil // nobody can be asked for it, which is no failure
	}
	var node corev1.Node
	if err := api.Get(ctx, types.NamespacedName{Name: pod.Spec.NodeName}, &node); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, which is no failure
	} else if err != nil {
		return nil, fmt.Errorf("reading node %s: %w", pod.Spec.NodeName, err)
	}
	return &node, nil
}

// get reads an object. It is false if there is none of the UID.
func get(ctx context.Context, api client.Reader, into client.Object, namespace string, what placementv1alpha1.ObjectReference) (bool, error) {
	err := api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: what.Name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s/%s: %w", namespace, what.Name, err)
	}
	return string(into.GetUID()) == what.UID, nil
}

// facts are what the objects say of the next step.
func (o *objects) facts(now time.Time) facts {
	f := facts{phase: o.move.Status.Phase, setGone: o.set == nil, refusal: o.refusal(), astray: o.astray, othersTurn: o.othersTurn, away: o.awayFacts(now)}
	// One that is deleted is given up.
	f.dropped = o.move.DeletionTimestamp != nil
	f.overdue = f.dropped || isOverdue(o.move, now)
	f.late = now.Sub(o.move.CreationTimestamp.Time) > planTimeout
	if o.pod != nil {
		f.holder, f.leaving = o.holder(), o.pod.DeletionTimestamp != nil
		_, costs := o.pod.Annotations[clusterview.CostBeforeMoveAnnotation]
		_, goes := o.pod.Annotations[clusterview.RemovedForMoveAnnotation]
		f.marked = costs && !goes // that is a mark of another Move, which would put it there again
		f.unready = !readyFor(o.pod, 0, now)
	}
	if o.extra != nil {
		f.extra, f.extraMarked = true, o.extra.Annotations[clusterview.RemovedForMoveAnnotation] == o.move.Name
	}
	if f.first = o.move.Spec.EvictsFirst(); f.first {
		f.needless, f.refusal = o.needless(now), o.firstRefusal(now)
		f.stuck = f.overdue && f.leaving && now.After(o.pod.DeletionTimestamp.Time) // that is when its time to end is over
		return f
	}
	if o.set == nil {
		return f
	}
	f.wanted, f.all = int(ptr.Deref(o.set.Spec.Replicas, 1)), len(o.pods)
	f.unwanted = f.wanted == 0 && o.deployment != nil && ptr.Deref(o.deployment.Spec.Replicas, 1) == 0
	for i := range o.pods {
		if readyFor(&o.pods[i], time.Duration(o.set.Spec.MinReadySeconds)*time.Second, now) {
			f.ready++
			f.extraReady = f.extraReady || &o.pods[i] == o.extra
		}
	}
	return f
}

func (o *objects) holder() holder {
	switch owner := metav1.GetControllerOfNoCopy(o.pod); {
	case owner == nil:
		return anotherOwner
	case owner.UID == o.move.UID:
		return ours
	case string(owner.UID) == o.move.Spec.Owner().UID:
		return replicaSet
	}
	return anotherOwner
}

// planTimeout is how long a Move waits for a Deployment that is at work. It keeps others from being made meanwhile.
const planTimeout = 30 * time.Second

// refusal says why a move is not begun, "" for no reason.
func (o *objects) refusal() string {
	if o.set == nil || o.deployment == nil {
		return "there is no Deployment that the pod is of"
	}
	d, rolling := o.deployment, o.deployment.Spec.Strategy.RollingUpdate
	switch {
	case o.pod != nil && o.pod.Spec.NodeName == "":
		return "the pod has no node"
	case d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || rolling == nil || Surge(d) < 1:
		return "the Deployment's strategy allows no pod more than it wants: it needs RollingUpdate with a maxSurge of at least 1"
	case Revision(d) != Revision(o.set):
		return "the pod is of an older revision"
	case d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != d.Status.Replicas:
		return "the Deployment is being updated"
	case o.beside >= Surge(d):
		return fmt.Sprintf("%d other pods of the Deployment are being replaced, as many as its maxSurge allows", o.beside)
	case o.set.Spec.Replicas != nil && len(o.pods) != int(*o.set.Spec.Replicas):
		return fmt.Sprintf("the ReplicaSet has %d pods and wants %d", len(o.pods), *o.set.Spec.Replicas)
	}
	return o.never
}

// revisionAnnotation is on a Deployment and on its newest ReplicaSet, with the same value.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Revision is that of a Deployment, or of one of its ReplicaSets.
func Revision(of client.Object) string { return of.GetAnnotations()[revisionAnnotation] }

// Surge is by how many pods a Deployment may have more than it wants.
func Surge(d *appsv1.Deployment) int {
	if d.Spec.Strategy.RollingUpdate == nil || d.Spec.Strategy.RollingUpdate.MaxSurge == nil || d.Spec.Replicas == nil {
		return 0
	}
	pods, err := intstr.GetScaledValueFromIntOrPercent(d.Spec.Strategy.RollingUpdate.MaxSurge, int(*d.Spec.Replicas), true)
	if err != nil {
		return 0
	}
	return pods
}

// readyFor reports that a pod has been ready for a time. Whether it is ready does not depend on the clock of its kubelet: one that is ahead would have the
// pod be evicted first as one that takes nothing away.
func readyFor(pod *corev1.Pod, since time.Duration, now time.Time) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && (since == 0 || now.Sub(c.LastTransitionTime.Time) >= since)
		}
	}
	return false
}
