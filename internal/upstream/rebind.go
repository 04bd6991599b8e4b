// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// rebind has a scheduler that is not running yet bind a pod to the next best node when the binding to the last one was refused, because the
// node has no room: at once, without a turn in the queue, without back-off, and without a failure of the pod. candidates is by profile how many
// nodes a pod is bound to at most. After the last it is tried again as after any other failure.
//
// The next best node is the one that the profile chooses now, without those that have refused. Candidates that were kept from the first decision were
// rejected: by the time of the answer another pod of the batch is on the second best node, and the pod would make uneven what is even. So the pod
// is taken off its node, decided, and put on another one, between two cycles of the scheduler.
//
// Where that cannot be right there is a new cycle at once: for pods that have written something for their node before they are bound, as those
// with volumes and claims have; for those that were nominated for it; and for those of a group.
func rebind(sched *scheduler.Scheduler, candidates map[string]int) {
	r := &rebinder{sched: sched, idle: make(chan struct{}, 1), again: make(map[types.UID]int)}
	r.idle <- struct{}{}
	rebinds := false
	for name, f := range sched.Profiles {
		if most := candidates[name]; most > 1 {
			beginRefused(name)
			sched.Profiles[name] = &rebindingFramework{Framework: f, r: r, most: most}
			rebinds = true
		}
	}
	if rebinds {
		sched.NextEntity = r.between(sched.NextEntity)
		sched.FailureHandler = r.requeue(sched.FailureHandler)
	}
}

// errAgain marks the failure of a pod that is to have a new cycle at once.
var errAgain = errors.New("the pod is decided anew at once")

// refused reports that a binding was not made because the node has no room.
func refused(status *fwk.Status) bool {
	return status.Code() == fwk.Error && apierrors.HasStatusCause(status.AsError(), clusterview.RefusedBinding)
}

// rebinder is what the profiles of a scheduler share.
type rebinder struct {
	sched *scheduler.Scheduler
	// idle has a token while the scheduler decides no pod. Who takes it may.
	idle chan struct{}
	// excluded are the nodes that have refused the pod that is decided anew, nil in all other cycles. Who has the token may write it.
	excluded sets.Set[string]

	mu sync.Mutex // guards again
	// again is how often pods in a row have been given a new cycle at once.
	again map[types.UID]int
}

// mostAgain bounds how many pods it is remembered of. Of one that is forgotten it is counted anew.
const mostAgain = 1 << 12

// between has the token be there while the scheduler waits for its next pod. It is for one caller, which asks for one pod after another.
func (r *rebinder) between(next nextEntity) nextEntity {
	decides := false
	return func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		if decides {
			r.idle <- struct{}{}
		}
		entity, err := next(logger)
		<-r.idle
		decides = true
		return entity, err
	}
}

// requeue has the pods that are marked tried again at once. That they failed is written all the same, as what was noted of their node must be
// taken back.
func (r *rebinder) requeue(handle scheduler.FailureHandlerFn) scheduler.FailureHandlerFn {
	return func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		handle(ctx, f, pod, status, nominating, start)
		if errors.Is(status.AsError(), errAgain) {
			r.sched.SchedulingQueue.Activate(klog.FromContext(ctx), map[string]*corev1.Pod{pod.Pod.Namespace + "/" + pod.Pod.Name: pod.Pod})
		}
	}
}

// countAgain reports whether a pod may have a new cycle at once, of which it has no more in a row than it has candidates.
func (r *rebinder) countAgain(uid types.UID, most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.again) >= mostAgain {
		clear(r.again)
	}
	if r.again[uid]++; r.again[uid] < most {
		return true
	}
	delete(r.again, uid)
	return false
}

func (r *rebinder) bound(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.again, uid)
}

// rebindingFramework is a profile whose pods are bound to another node when one refuses.
type rebindingFramework struct {
	framework.Framework
	r    *rebinder
	most int
	// moved has a placed for each pod that is being bound to another node than its cycle knows of.
	moved sync.Map
}

// placed is a pod on the node that it is to be bound to.
type placed struct {
	state fwk.CycleState
	pod   *corev1.Pod
	node  string
}

// RunBindPlugins binds a pod, to another node if it must. Of that node the cycle learns nothing, so what is to be undone when it fails is
// undone here.
func (f *rebindingFramework) RunBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	at := placed{state, pod, node}
	var by sets.Set[string] // those that have refused it
	for tried := 1; ; tried++ {
		status := f.Framework.RunBindPlugins(ctx, at.state, at.pod, at.node)
		if status.IsSuccess() {
			f.r.bound(pod.UID)
			return nil
		}
		if by == nil {
			by = sets.New[string]()
		}
		by.Insert(at.node)
		next, outcome := placed{}, outcomeBackoff
		if refused(status) && tried < f.most {
			next, outcome = f.elsewhere(ctx, at, by)
		}
		if refused(status) {
			noteRefused(f.ProfileName(), outcome)
		}
		if outcome == outcomeNext {
			logger := klog.FromContext(ctx)
			logger.V(2).Info("A node has no room for the pod, and the next best is tried", "pod", klog.KObj(pod), "node", at.node, "next", next.node)
			// Pods may wait for what it took there, as its host port. Where the binding fails altogether, the scheduler says so.
			f.r.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, at.pod, nil, nil)
			at = next
			f.moved.Store(pod.UID, at)
			continue
		}
		if _, moved := f.moved.LoadAndDelete(pod.UID); moved {
			f.undo(ctx, at)
		}
		if outcome == outcomeAgain {
			return fwk.AsStatus(fmt.Errorf("%w: %w", status.AsError(), errAgain))
		}
		return status
	}
}

// undo takes a pod off the node that it was to be bound to. It may have been taken off already.
func (f *rebindingFramework) undo(ctx context.Context, at placed) {
	f.RunReservePluginsUnreserve(ctx, at.state, at.pod, at.node)
	if err := f.r.sched.Cache.ForgetPod(klog.FromContext(ctx), at.pod); err != nil {
		klog.FromContext(ctx).Error(err, "A pod that was not bound still counts on its node", "pod", klog.KObj(at.pod), "node", at.node)
	}
}

// elsewhere takes a pod off its node and puts it on the next best, or says what is to become of it instead.
func (f *rebindingFramework) elsewhere(ctx context.Context, at placed, by sets.Set[string]) (placed, string) {
	if !f.movable(ctx, at) {
		if f.r.countAgain(at.pod.UID, f.most) {
			return placed{}, outcomeAgain
		}
		return placed{}, outcomeBackoff
	}
	select {
	case <-f.r.idle:
	case <-ctx.Done():
		return placed{}, outcomeBackoff
	}
	defer func() { f.r.idle <- struct{}{} }()
	f.undo(ctx, at)
	next, err := f.decide(ctx, at.pod, by)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("There is no other node for the pod now", "pod", klog.KObj(at.pod), "err", err)
		return placed{}, outcomeBackoff
	}
	return next, outcomeNext
}

// movable reports whether nothing but the scheduler's own memory says that a pod is on its node.
func (f *rebindingFramework) movable(ctx context.Context, at placed) bool {
	return at.pod.Status.NominatedNodeName == "" && at.pod.Spec.SchedulingGroup == nil && f.RunPreBindPreFlights(ctx, at.state, at.pod, at.node).IsSkip()
}

// decide puts a pod on the best node but for some, as a cycle does. The error is that it is on none.
func (f *rebindingFramework) decide(ctx context.Context, of *corev1.Pod, but sets.Set[string]) (placed, error) {
	logger, sched, none := klog.FromContext(ctx), f.r.sched, placed{}
	pod, err := f.SharedInformerFactory().Core().V1().Pods().Lister().Pods(of.Namespace).Get(of.Name)
	switch {
	case err != nil:
		return none, err
	case pod.UID != of.UID || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil:
		return none, errors.New("it has a node, or is being deleted")
	}
	snapshot, is := f.SnapshotSharedLister().(*internalcache.Snapshot)
	if !is {
		return none, fmt.Errorf("the snapshot is a %T", f.SnapshotSharedLister())
	}
	if err := sched.Cache.UpdateSnapshot(logger, snapshot); err != nil {
		return none, err
	}
	info, err := framework.NewPodInfo(pod.DeepCopy())
	if err != nil {
		return none, err
	}
	state := framework.NewCycleState()
	state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	state.Write(anewKey, anew{})
	f.r.excluded = but
	defer func() { f.r.excluded = nil }()
	result, err := sched.SchedulePod(ctx, sched.Profiles[f.ProfileName()], state, &framework.QueuedPodInfo{PodInfo: info})
	if err != nil {
		return none, err
	}
	at := placed{state, pod.DeepCopy(), result.SuggestedHost}
	at.pod.Spec.NodeName = at.node
	if err := sched.Cache.AssumePod(logger, at.pod); err != nil {
		return none, err
	}
	status := f.RunReservePluginsReserve(ctx, state, at.pod, at.node)
	if status.IsSuccess() {
		_, status = f.RunPermitPlugins(ctx, state, at.pod, at.node)
	}
	if status.IsSuccess() && f.movable(ctx, at) {
		return at, nil
	}
	f.undo(ctx, at)
	return none, errors.Join(errors.New("the node could not be reserved at once"), status.AsError())
}

// RunPostBindPlugins tells the plugins of a pod that is bound, where it is.
func (f *rebindingFramework) RunPostBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	if data, moved := f.moved.LoadAndDelete(pod.UID); moved {
		at := data.(placed)
		state, pod, node = at.state, at.pod, at.node
	}
	f.Framework.RunPostBindPlugins(ctx, state, pod, node)
}

// boundTo is the node that a pod is being bound to in place of the one that its cycle knows of, false if it is that one.
func (f *rebindingFramework) boundTo(uid types.UID) (node string, moved bool) {
	data, moved := f.moved.Load(uid)
	if moved {
		node = data.(placed).node
	}
	return node, moved
}

// anewKey marks a cycle in which a pod is decided anew, without the nodes that have refused it.
const anewKey fwk.StateKey = "Espalier/Anew"

type anew struct{}

// Clone returns the mark.
func (anew) Clone() fwk.StateData { return anew{} }

// decidedAnew reports whether some nodes are kept from a cycle's pod, and from no other that is alike.
func decidedAnew(state fwk.CycleState) bool {
	_, err := state.Read(anewKey)
	return err == nil
}

// RunFilterPluginsWithNominatedPods keeps a pod off the nodes that have refused it.
func (f *rebindingFramework) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	// Not a matter of the cycle's state, in which it would be looked up for each node of each pod, though hardly any is ever refused.
	if f.r.excluded != nil && f.r.excluded.Has(node.Node().Name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) had no room for the pod when it was to be bound")
	}
	return f.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
}
