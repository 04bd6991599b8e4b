// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package recordingbinder

import (
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// reasonNoRecord is that of the event which says that a pod is bound without a record.
const reasonNoRecord = "NoRoomForRecord"

var unrecorded = metrics.NewCounter(&metrics.CounterOpts{
	Subsystem: "espalier", Name: "unrecorded_bindings_total", StabilityLevel: metrics.ALPHA,
	Help: "Number of pods that were bound without the record of their placement, because with it their annotations would be larger than the API server allows.",
})

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(unrecorded) })

// fit leaves out of the annotations of a binding those that say something, if the pod's would grow beyond what the API server allows with them.
// Up to 1.37 the API server takes such a binding, and then refuses every change of the pod, its kubelet's included; since 1.38 it refuses
// the binding.
func fit(pod *corev1.Pod, ours map[string]string) (fitting map[string]string, all bool) {
	size := 0
	for key, value := range pod.Annotations {
		if _, written := ours[key]; !written {
			size += len(key) + len(value)
		}
	}
	for key, value := range ours {
		size += len(key) + len(value)
	}
	if size <= validation.TotalAnnotationSizeLimitB {
		return ours, true
	}
	return emptied(ours), false
}

// emptied are the annotations that only empty what somebody else has written, nil for none.
func emptied(ours map[string]string) map[string]string {
	some := maps.Clone(ours)
	maps.DeleteFunc(some, func(_, value string) bool { return value != "" })
	if len(some) == 0 {
		return nil
	}
	return some
}

// sayUnrecorded counts a pod that is bound without a record, and says so in an event.
func (b *RecordingBinder) sayUnrecorded(pod *corev1.Pod) {
	unrecorded.Inc()
	if recorder := b.handle.EventRecorder(); recorder != nil {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, reasonNoRecord, "Binding", "%s", fmt.Sprintf(
			"The pod is bound without a record of its placement: with it the annotations would be larger than %d bytes in all. Keep fewer or shorter annotations, or what they hold in a ConfigMap.",
			validation.TotalAnnotationSizeLimitB))
	}
}
