// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package disconnect

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// unreachable is the taint that pods tolerate for a time.
var unreachable = corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}

// tolerationOf returns a pod's toleration of nodes that do not answer, nil for none. Of several, Kubernetes goes by the first.
func tolerationOf(pod *corev1.Pod) *corev1.Toleration {
	for i := range pod.Spec.Tolerations {
		if t := &pod.Spec.Tolerations[i]; t.ToleratesTaint(klog.Background(), &unreachable, false) {
			return t
		}
	}
	return nil
}

// stays reports that a pod is not deleted because its node does not answer, by our doing or its own.
func stays(pod *corev1.Pod) bool {
	t := tolerationOf(pod)
	return kept(pod) || t != nil && t.TolerationSeconds == nil
}

// kept reports that a pod has been made to tolerate it for another time than its own.
func kept(pod *corev1.Pod) bool {
	_, is := pod.Annotations[clusterview.UnreachableSecondsAnnotation]
	return is
}

// tolerate has a pod tolerate it for some seconds, nil for without end, and writes down for how long it did by itself. It reports whether
// that changed anything. A pod that does not tolerate it at all is deleted before anybody can look, and one that always does is
// never deleted.
func tolerate(pod *corev1.Pod, seconds *int64) bool {
	t := tolerationOf(pod)
	switch {
	case t == nil, t.TolerationSeconds == nil && !kept(pod), kept(pod) && ptr.Equal(t.TolerationSeconds, seconds):
		return false
	case t.Effect != corev1.TaintEffectNoExecute:
		return false // only one for this effect has seconds: somebody else has written the annotation
	}
	if !kept(pod) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, clusterview.UnreachableSecondsAnnotation, strconv.FormatInt(*t.TolerationSeconds, 10))
	}
	t.TolerationSeconds = seconds
	return true
}

// ownSeconds is for how long a pod that is kept tolerates it by itself. What cannot be read somebody else has written: then it is as
// Kubernetes has it where nobody says otherwise.
func ownSeconds(pod *corev1.Pod) int64 {
	seconds, err := strconv.ParseInt(pod.Annotations[clusterview.UnreachableSecondsAnnotation], 10, 64)
	if err != nil {
		return 300
	}
	return seconds
}

// restore has a pod tolerate it for as long as it did by itself, and reports whether that changed anything.
func restore(pod *corev1.Pod) bool {
	if !kept(pod) {
		return false
	}
	if t := tolerationOf(pod); t != nil && t.Effect == corev1.TaintEffectNoExecute {
		t.TolerationSeconds = new(ownSeconds(pod))
	}
	delete(pod.Annotations, clusterview.UnreachableSecondsAnnotation)
	return true
}
