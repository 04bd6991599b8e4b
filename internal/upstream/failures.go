// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// mostFailures is how many refused pods are written down at a time. The next one waits.
const mostFailures = 32

// failAsync has a scheduler that is not running yet take up the next pod while it writes down why the last one was refused, until
// the context ends.
//
// Otherwise nothing is decided until the API server has taken the pod's condition, some milliseconds in a burst. The bindings before
// end meanwhile, and none begins: each pod that fits nowhere cost those of others 2 ms of processor time, and with this it
// costs one (`make perf ONLY=Ordinary,AttackLevels`, 120 pods among 1,000, eight rounds).
//
// The request alone is made beside the next cycle. The pod is back in the queue before that begins. Else the queue may give it out again
// before it has noted that it is back, and then it throws the pod away.
//
// What the next cycle must know of is written before it begins, as without this: that a pod is nominated or no longer is. So are errors,
// which are rare but for those of pods that are withheld, and what a Permit plugin refuses, because kube-scheduler counts on that.
//
// The handler is returned as it is where an extender binds, which does not ask us before it does. It does all itself where the scheduler
// makes its requests in the background anyway (the feature gate SchedulerAsyncAPICalls).
func failAsync(ctx context.Context, profiles profile.Map, extenders []fwk.Extender, handle scheduler.FailureHandlerFn) scheduler.FailureHandlerFn {
	if slices.ContainsFunc(extenders, fwk.Extender.IsBinder) {
		return handle
	}
	w := &written{ctx: ctx, slots: make(chan struct{}, mostFailures), pods: make(map[types.UID]chan struct{})}
	for name, f := range profiles {
		profiles[name] = &orderedFramework{f, w}
	}
	return func(cycle context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		w.await(pod.Pod.UID)
		if mayWait(pod.Pod, status, nominating) && f.APICacher() == nil {
			f = &writingFramework{f, w}
		}
		handle(cycle, f, pod, status, nominating, start)
	}
}

// mayWait reports whether the next cycle need not know what became of a pod.
func mayWait(pod *corev1.Pod, status *fwk.Status, nominating *fwk.NominatingInfo) bool {
	nominated := pod.Status.NominatedNodeName != "" || nominating != nil && nominating.NominatedNodeName != ""
	assumed := pod.Spec.NodeName != "" // it was refused while it was being bound
	_, withheld := errors.AsType[withheldError](status.AsError())
	return (status.IsRejected() || withheld) && !nominated && !assumed
}

// writingFramework is a profile for the handler of one failure. The pod's status is written while that goes on.
type writingFramework struct {
	framework.Framework
	written *written
}

// APICacher returns what kube-scheduler hands requests to that it need not wait for.
func (f *writingFramework) APICacher() fwk.APICacher { return &statusWriter{f.ClientSet(), f.written} }

// statusWriter writes the status of refused pods.
type statusWriter struct {
	client  clientset.Interface
	written *written
}

// PatchPodStatus does what the scheduler does without an APICacher, in the background. It waits while too much is under way.
func (s *statusWriter) PatchPodStatus(pod *corev1.Pod, conditions []*corev1.PodCondition, nominating *fwk.NominatingInfo) (<-chan error, error) {
	status := pod.Status.DeepCopy()
	changed := nominating.Mode() == fwk.ModeOverride && status.NominatedNodeName != nominating.NominatedNodeName
	if changed {
		status.NominatedNodeName = nominating.NominatedNodeName
	}
	for _, condition := range conditions {
		changed = podutil.UpdatePodCondition(status, condition) || changed
	}
	if !changed {
		return nil, nil //nolint:nilnil // nobody waits for it
	}
	done := s.written.begin(pod.UID)
	go func() {
		defer done()
		if err := util.PatchPodStatus(s.written.ctx, s.client, pod.Name, pod.Namespace, &pod.Status, status); err != nil {
			utilruntime.HandleErrorWithContext(s.written.ctx, err, "Error updating pod", "pod", klog.KObj(pod))
		}
	}()
	return nil, nil //nolint:nilnil // nobody waits for it
}

var errNoBindings = errors.New("the handler of a failure binds nothing")

// BindPod is not called: nothing is bound where a failure is handled.
func (s *statusWriter) BindPod(*corev1.Binding) (<-chan error, error) { return nil, errNoBindings }

// WaitOnFinish is beside BindPod.
func (s *statusWriter) WaitOnFinish(context.Context, <-chan error) error { return errNoBindings }

// written are the refused pods that are being written down.
type written struct {
	ctx   context.Context //nolint:containedctx // of the scheduler: the requests end with it
	slots chan struct{}

	mu sync.Mutex // guards pods
	// pods has a channel for each, which is closed when it is written.
	pods map[types.UID]chan struct{}
}

// begin waits until few enough are being written, and says that a pod is. Done says that it is no longer.
func (w *written) begin(uid types.UID) (done func()) {
	w.slots <- struct{}{}
	ended := make(chan struct{})
	w.mu.Lock()
	w.pods[uid] = ended
	w.mu.Unlock()
	return func() {
		w.mu.Lock()
		delete(w.pods, uid)
		w.mu.Unlock()
		close(ended)
		<-w.slots
	}
}

// await waits until a pod is not being written down: it may have been tried again meanwhile, and what comes of that must be
// written after what came before.
func (w *written) await(uid types.UID) {
	w.mu.Lock()
	ended, is := w.pods[uid]
	w.mu.Unlock()
	if is {
		<-ended
	}
}

// orderedFramework is a profile that binds a pod only when it is written down that it was refused before: else the API server would
// be told last that a pod has no node which has one.
type orderedFramework struct {
	framework.Framework
	written *written
}

// RunBindPlugins binds a pod.
func (o *orderedFramework) RunBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	o.written.await(pod.UID)
	return o.Framework.RunBindPlugins(ctx, state, pod, node)
}
