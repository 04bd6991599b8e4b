// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// evictedFirst is the step for a pod that no other one can be ready beside. Nothing is handed over, so nothing is undone: the pod is evicted,
// or left as it is.
func (f *facts) evictedFirst() step {
	failed := func(why string) step { return step{phase: placementv1alpha1.MoveFailed, message: why} }
	evicting := f.phase == placementv1alpha1.MoveEvicting
	switch {
	case f.holder == nobody:
		return step{phase: placementv1alpha1.MoveDone, message: "the pod is gone"}
	case f.holder != replicaSet:
		return failed("somebody else has become the controller of the pod")
	case f.leaving && evicting && f.stuck:
		return failed("the pod is ending, and its node does not say that it has")
	case f.leaving && evicting:
		return step{phase: f.phase, message: "the pod is ending"}
	case f.leaving:
		return failed("somebody else has deleted the pod")
	case f.dropped:
		return failed("the Move was deleted")
	case f.needless != "":
		return failed(f.needless)
	case f.refusal != "" && (f.late || f.overdue):
		return failed("it was not begun in time: " + f.refusal)
	case f.refusal != "":
		return step{phase: placementv1alpha1.MovePlanned, message: f.refusal}
	case f.overdue:
		return failed("the pod was not evicted in time: its disruption budget did not allow it")
	}
	return step{phase: placementv1alpha1.MoveEvicting, message: "the pod is being evicted, as soon as its disruption budget allows it", action: evict}
}

// readStatefulSet reads that of the pod, with its pods and its other Moves.
func (o *objects) readStatefulSet(ctx context.Context, api client.Reader) error {
	set := &appsv1.StatefulSet{}
	if found, err := get(ctx, api, set, o.move.Namespace, o.move.Spec.StatefulSet); err != nil || !found {
		return err
	}
	o.statefulSet = set
	if err := o.readPods(ctx, api, set, set.Spec.Selector); err != nil {
		return err
	}
	return o.readForFirst(ctx, api)
}

// readForFirst reads what says whether a pod is evicted first, beside the other pods.
func (o *objects) readForFirst(ctx context.Context, api client.Reader) error {
	if err := o.readNode(ctx, api); err != nil {
		return err
	}
	return o.readBeside(ctx, api)
}

// needless says why a pod is not to be evicted first from where it is, "" for no reason. It may have waited long for its budget, and what its Move was made
// for may be over: nothing would be gained by what the eviction takes away.
func (o *objects) needless(now time.Time) string {
	drains := o.move.Spec.Reason == placementv1alpha1.MoveDrain
	switch {
	case o.pod == nil:
		return ""
	case o.move.Spec.Reason == placementv1alpha1.MoveRestart && readyFor(o.pod, 0, now):
		return "the pod is ready again"
	case o.node == nil:
		return ""
	case isUnreachable(o.node):
		// Nobody could end the pod there, and until it has ended no other one of a StatefulSet has its name.
		return "its node does not answer"
	case drains && clusterview.Leaving(o.node) == "":
		return "nobody is about to remove its node any more"
	case drains && !clusterview.KeepsOff(o.node, o.pod):
		// It would be evicted from there again and again, or from one such node after the other.
		return "its node would take it again"
	case drains && !isEnded(o.node) && clusterview.Spared(o.pod, now) != "":
		// Nobody but this would take it away before its node goes: Karpenter waits for it, and Cluster Autoscaler keeps the node. A node that has reached
		// its end goes with the pod.
		return "the pod asks to be left on its node by the annotation " + clusterview.Spared(o.pod, now)
	}
	return ""
}

// isEnded reports that a node was cordoned because its end had come.
func isEnded(node *corev1.Node) bool {
	_, is := node.Annotations[clusterview.CordonedForEndAnnotation]
	return is
}

// isUnreachable reports that a node does not answer. Unlike with clusterview.Silent its taint may have any effect: where most of a zone does not answer, none
// is given that evicts.
func isUnreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}

// firstRefusal says why a pod is not evicted first now, "" for no reason. All others must be ready, so that no more than one is away: a pod that
// is being deleted, or is yet to be made, is one too few. A pod that is not ready itself takes nothing away.
func (o *objects) firstRefusal(now time.Time) string {
	wanted, minReady, updating := o.asked()
	switch {
	case o.set == nil && o.statefulSet == nil:
		return "there is no ReplicaSet or StatefulSet that the pod is of"
	case o.pod == nil:
		return ""
	case o.pod.Spec.NodeName == "":
		return "the pod has no node"
	case updating:
		return "its workload is being updated"
	case o.beside > 0:
		return "another pod of its workload is being moved"
	case !readyFor(o.pod, 0, now):
		return ""
	case len(o.pods) != wanted:
		return fmt.Sprintf("its workload has %d pods and wants %d", len(o.pods), wanted)
	}
	for i := range o.pods {
		if p := &o.pods[i]; p.UID != o.pod.UID && !readyFor(p, minReady, now) {
			return "another pod of its workload, " + p.Name + ", is not ready"
		}
	}
	return ""
}

// asked is how many pods the workload wants, for how long each must have been ready, and whether it is being updated.
func (o *objects) asked() (wanted int, minReady time.Duration, updating bool) {
	seconds := func(n int32) time.Duration { return time.Duration(n) * time.Second }
	switch s, d := o.statefulSet, o.deployment; {
	case s != nil:
		return int(ptr.Deref(s.Spec.Replicas, 1)), seconds(s.Spec.MinReadySeconds), s.Status.ObservedGeneration < s.Generation || isRolledOut(s)
	case o.set == nil:
		return 0, 0, false
	default:
		wanted, minReady = int(ptr.Deref(o.set.Spec.Replicas, 1)), seconds(o.set.Spec.MinReadySeconds)
		updating = o.set.Status.ObservedGeneration < o.set.Generation
		if d != nil {
			updating = updating || Revision(d) != Revision(o.set) || d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != d.Status.Replicas
		}
		return wanted, minReady, updating
	}
}

// isRolledOut reports that the controller of a StatefulSet is about to delete pods for a new revision. Where nobody does but people, or a partition
// keeps the others, it may have two revisions for ever. The partition counts from the first pod, whatever its ordinal is, as the controller has it.
func isRolledOut(s *appsv1.StatefulSet) bool {
	if s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || s.Status.UpdateRevision == s.Status.CurrentRevision {
		return false
	}
	partition := int32(0)
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition = ptr.Deref(rolling.Partition, 0)
	}
	return partition == 0 || s.Status.UpdatedReplicas < ptr.Deref(s.Spec.Replicas, 1)-partition
}

// RefusesFirst reports that no Move of a pod that evicts first is to be made now. It would wait as one of those that may be made at once, and fail where
// another pod takes long to start. A pod that stays whatever the others do rests; the next one may go as soon as the others are ready.
func (l *Lookup) RefusesFirst(ctx context.Context, m *placementv1alpha1.Move, pod *corev1.Pod, owner *Owner) (bool, error) {
	if !owner.EvictFirst {
		return false, nil
	}
	if owner.ready() < owner.replicas() && readyFor(pod, 0, l.now) {
		return true, nil // without a request for its pods: hundreds of workloads may wait so at each look
	}
	o := &objects{move: m, pod: pod, set: owner.Set, deployment: owner.Deployment, statefulSet: owner.StatefulSet}
	var err error
	if o.pods, err = l.podsOf(ctx, owner); err != nil || o.firstRefusal(l.now) != "" {
		return true, err
	}
	if o.node, err = nodeOf(ctx, l.api, pod); err != nil {
		return true, err
	}
	refuses := o.needless(l.now) != ""
	if refuses {
		l.Refuse(pod)
	}
	return refuses, nil
}

// podsOf reads the pods of an owner that are not being deleted.
func (l *Lookup) podsOf(ctx context.Context, owner *Owner) ([]corev1.Pod, error) {
	is, known := l.pods[owner.direct().GetUID()]
	if !known {
		var selector *metav1.LabelSelector
		if owner.StatefulSet != nil {
			selector = owner.StatefulSet.Spec.Selector
		} else {
			selector = owner.Set.Spec.Selector
		}
		var o objects
		is.err = o.readPods(ctx, l.api, owner.direct(), selector)
		is.all = o.pods
		l.pods[owner.direct().GetUID()] = is
	}
	return is.all, is.err
}
