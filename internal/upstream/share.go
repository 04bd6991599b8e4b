// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	feature "k8s.io/apiserver/pkg/util/feature"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// errNotOurs is what a binding comes to of a pod that another replica places by now.
var errNotOurs = errors.New("another replica of the scheduler places the pods of this workload by now")

// Ownership says which pods are a scheduler's to place, where several are active at once.
type Ownership interface {
	// Identity is that of this scheduler, of which there is no other.
	Identity() string
	// Owns reports whether a pod is its own to place.
	Owns(pod *corev1.Pod) bool
	// Begin is called before a pod is bound, and end when that is through. It is false for one that is not its own.
	Begin(pod *corev1.Pod) (end func(), ok bool)
	// OnChange has a function called when other pods than before are its own.
	OnChange(changed func())
}

// share has a scheduler that is not running yet place its own pods and no others. A plugin of that name in all of its
// profiles keeps others out of what is tried. It remains what has become another's since it was let in: that is handed
// back when it is taken up, when it is refused, and when it is about to be bound, and nobody hears of it.
//
// Single names the PreEnqueue plugins that go by what one scheduler alone does: a profile with one of them is refused. Each scheduler orders nodes that
// tie in its own way.
func share(ctx context.Context, sched *Scheduler, pods corelisters.PodLister, plugin string, single []string, owner Ownership) error {
	for _, gate := range []featuregate.Feature{features.GenericWorkload, features.CoordinatedLeaderElection} {
		if feature.DefaultFeatureGate.Enabled(gate) {
			return fmt.Errorf("the feature gate %s is on, with which replicas cannot be active at once: switch off one of the two", gate)
		}
	}
	for name, f := range sched.Profiles {
		for _, p := range f.PreEnqueuePlugins() {
			if slices.Contains(single, p.Name()) {
				return fmt.Errorf("profile %s: the plugin %s wants one scheduler to place all pods, so that replicas cannot be active at once: leave one of the two away", name, p.Name())
			}
		}
		if !slices.ContainsFunc(f.PreEnqueuePlugins(), func(p fwk.PreEnqueuePlugin) bool { return p.Name() == plugin }) {
			return fmt.Errorf("profile %s: the plugin %s is not enabled, so that all replicas would place its pods: enable it under plugins.preEnqueue", name, plugin)
		}
	}
	registerShare()
	p := &part{sched, pods, owner}
	for name, f := range sched.Profiles {
		if h := hinterOf(f); h != nil {
			h.HashTies(owner.Identity())
		}
		sched.Profiles[name] = &sharedFramework{f, owner}
	}
	sched.NextEntity = p.next(ctx, sched.NextEntity)
	sched.FailureHandler = p.failed(sched.FailureHandler)
	owner.OnChange(func() { p.activate(klog.FromContext(ctx)) })
	return nil
}

// part is what one of several schedulers places.
type part struct {
	sched *Scheduler
	pods  corelisters.PodLister
	owner Ownership
}

// next takes up the next pod of its own.
func (p *part) next(ctx context.Context, next nextEntity) nextEntity {
	return func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		for {
			entity, err := next(logger)
			info, ok := entity.(*framework.QueuedPodInfo)
			if err != nil || !ok || p.owner.Owns(info.Pod) {
				return entity, err
			}
			p.handBack(ctx, info.Pod)
		}
	}
}

// failed passes on what became of pods of its own.
func (p *part) failed(handle scheduler.FailureHandlerFn) scheduler.FailureHandlerFn {
	return func(ctx context.Context, f framework.Framework, pod *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		if p.owner.Owns(pod.Pod) {
			handle(ctx, f, pod, status, nominating, start)
			return
		}
		p.handBack(ctx, pod.Pod)
	}
}

// handBack puts a pod where those wait that are not its own, as it is now. If it is gone, or bound, it is in no queue.
func (p *part) handBack(ctx context.Context, pod *corev1.Pod) {
	handedBack.Inc()
	p.sched.SchedulingQueue.Done(pod.UID)
	now, err := p.pods.Pods(pod.Namespace).Get(pod.Name)
	if err == nil && now.UID == pod.UID && now.Spec.NodeName == "" {
		p.sched.SchedulingQueue.Add(ctx, now)
	}
}

// activate has all pods tried that are its own by now. Those that are tried already are not tried twice.
func (p *part) activate(logger klog.Logger) {
	all, err := p.pods.List(labels.Everything())
	if err != nil {
		logger.Error(err, "Cannot list the pods that are to be placed by this replica")
		return
	}
	own := make(map[string]*corev1.Pod)
	for _, pod := range all {
		if pod.Spec.NodeName == "" && p.owner.Owns(pod) {
			own[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	p.sched.SchedulingQueue.Activate(logger, own)
}

// sharedFramework is a profile that binds no pod of another replica's, and evicts none for it.
type sharedFramework struct {
	framework.Framework
	owner Ownership
}

// RunPostFilterPlugins has others make way for a pod. What is evicted for one that has become another's while it was decided about would be evicted
// for nothing: the failure is not handled here, and the pod is nominated for no node.
func (f *sharedFramework) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if !f.owner.Owns(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, errNotOurs.Error())
	}
	return f.Framework.RunPostFilterPlugins(ctx, state, pod, statuses)
}

// RunBindPlugins binds a pod.
func (f *sharedFramework) RunBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	end, ok := f.owner.Begin(pod)
	if !ok {
		return fwk.AsStatus(errNotOurs)
	}
	defer end()
	return f.Framework.RunBindPlugins(ctx, state, pod, node)
}
