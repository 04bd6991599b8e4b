// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package recordingbinder

import (
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/apis/config"
)

// oneIn is how many pods there are to one that is announced, where they are sampled.
const oneIn = 10

// Announced reports whether a pod that is bound gets the event Scheduled. Of pods that are sampled it goes by the UID, so that a pod that
// another scheduler binds in the end is announced or not all the same.
func Announced(events config.ScheduledEvents, pod *corev1.Pod) bool {
	switch events {
	case config.ScheduledEventsOff:
		return false
	case config.ScheduledEventsSampled:
		h := fnv.New32a()
		_, _ = h.Write([]byte(pod.UID)) // it never fails
		return h.Sum32()%oneIn == 0
	default:
		return true
	}
}
