// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package recordingbinder

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/util/retry"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Name is the plugin's name in a profile.
const Name = "RecordingBinder"

// RecordingBinder is the plugin. It takes the place of DefaultBinder: the first plugin of a profile that binds a pod is
// the only one.
type RecordingBinder struct{ handle fwk.Handle }

var _ fwk.BindPlugin = &RecordingBinder{}

// New makes the plugin from *config.RecordingBinderArgs. What they say is for who runs a binding around it: to which node next,
// and which pods get an event.
func New(_ context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.RecordingBinderArgs)
	if !ok {
		return nil, fmt.Errorf("args of plugin %s: want *config.RecordingBinderArgs, got %T", Name, obj)
	}
	if err := validation.RecordingBinderArgs(nil, args).ToAggregate(); err != nil {
		return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
	}
	register()
	return &RecordingBinder{handle}, nil
}

// Name returns the plugin's name.
func (b *RecordingBinder) Name() string { return Name }

// Bind binds a pod to a node. A pod that is not spread gets no record, and one that somebody else has written is emptied. A pod whose
// annotations have no room for its record is bound without.
func (b *RecordingBinder) Bind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	ours := annotations(state, pod)
	fitting, all := fit(pod, ours)
	binding.Annotations = fitting
	err := b.send(ctx, binding)
	if apierrors.IsInvalid(err) && all && len(ours) > 0 { // the pod may have grown meanwhile
		binding = binding.DeepCopy()
		binding.Annotations, all = nil, false
		err = b.send(ctx, binding)
	}
	if err == nil && !all {
		b.sayUnrecorded(pod)
	}
	return fwk.AsStatus(err)
}

// annotations are those that a pod is bound with, nil for none.
func annotations(state fwk.CycleState, pod *corev1.Pod) map[string]string {
	all := make(map[string]string)
	for _, key := range []string{clusterview.PlacedByAnnotation, clusterview.DecisionAnnotation, clusterview.LeaseExpiryAnnotation, clusterview.IdentityAnnotation} {
		if _, written := pod.Annotations[key]; written {
			all[key] = ""
		}
	}
	if by := placedBy(state, pod); by != "" {
		all[clusterview.PlacedByAnnotation] = by
	}
	maps.Copy(all, clusterview.ReadBinding(state))
	if len(all) == 0 {
		return nil
	}
	return all
}

// placedBy is by what a pod was placed, "" if it is not spread. Where the filters have left one node, as where a pod is
// nominated, nobody has put its levels in order.
func placedBy(state fwk.CycleState, pod *corev1.Pod) string {
	if clusterview.Preassigned(pod) {
		return ""
	}
	levels, found := clusterview.ReadPlacedBy(state)
	if !found {
		var err error
		if levels, found, err = clusterview.ReadLevels(state); err != nil || !found {
			return ""
		}
	}
	return levels.PlacedBy()
}

// send sends a binding: by the scheduler's queue of API calls where it has one, as with the gate SchedulerAsyncAPICalls.
func (b *RecordingBinder) send(ctx context.Context, binding *corev1.Binding) error {
	calls := b.handle.APICacher()
	if calls == nil {
		// As DefaultBinder does: a pod that gave up its node for an API server that restarts would lose it to another.
		return retry.OnError(retry.DefaultBackoff, retriable, func() error {
			return b.handle.ClientSet().CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
		})
	}
	finished, err := calls.BindPod(binding)
	if err != nil {
		return err
	}
	return calls.WaitOnFinish(ctx, finished)
}

// retriable reports whether a request may go well a moment later: the errors for which kube-scheduler sends a binding again.
func retriable(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || utilnet.IsConnectionRefused(err)
}
