// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// HintIf answers the queue when it asks a plugin whether an event helps a pod that the plugin has
// refused. What cannot be read might help: a pod that is tried in vain costs a moment, and one
// that is not tried waits for ever.
//
// It queues a pod if a change of an object of some kind helps it. There is no object
// before it comes, nor after it is gone; T is a type that can be nil.
func HintIf[T any](plugin, kind string, helps func(pod *corev1.Pod, before, after T) bool) fwk.QueueingHintFn {
	return func(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
		before, after, err := as[T](oldObj, newObj)
		if err != nil {
			return fwk.Queue, fmt.Errorf("plugin %s: reading a %s event: %w", plugin, kind, err)
		}
		if helps(pod, before, after) {
			return fwk.Queue, nil
		}
		return fwk.QueueSkip, nil
	}
}

// as returns the objects of an event. One whose deletion was missed comes as it was seen last.
func as[T any](oldObj, newObj any) (before, after T, err error) {
	if unknown, ok := oldObj.(cache.DeletedFinalStateUnknown); ok {
		oldObj = unknown.Obj
	}
	var ok bool
	if before, ok = oldObj.(T); !ok && oldObj != nil {
		return before, after, fmt.Errorf("want a %T, got a %T", before, oldObj)
	}
	if after, ok = newObj.(T); !ok && newObj != nil {
		return before, after, fmt.Errorf("want a %T, got a %T", after, newObj)
	}
	return before, after, nil
}
