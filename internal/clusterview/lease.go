// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/lifetime"
)

// LeaseOf is for how long a pod wants to stay on its node, 0 for no time: as long as its annotation says; or else, if there is a function
// that knows Jobs, as long as it may run, or its Job may. An error quotes what cannot be read, or names the Job that is not known.
func LeaseOf(pod *corev1.Pod, jobs func(namespace, name string) (*batchv1.Job, error)) (time.Duration, error) {
	if text, ok := pod.Annotations[LeaseAnnotation]; ok {
		lease, err := lifetime.ParseLease(text)
		if err != nil {
			return 0, fmt.Errorf("annotation %s: %w", LeaseAnnotation, err)
		}
		return lease, nil
	}
	if jobs == nil {
		return 0, nil
	}
	if pod.Spec.ActiveDeadlineSeconds != nil {
		return Seconds(*pod.Spec.ActiveDeadlineSeconds), nil
	}
	name := JobOf(pod)
	if name == "" {
		return 0, nil
	}
	job, err := jobs(pod.Namespace, name)
	if apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("the pod's Job %q is not known yet, and with it for how long the pod may run", name)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the pod's Job %q: %w", name, err)
	}
	return JobLease(job), nil
}

// JobOf is the name of the Job that a pod is of, "" for none.
func JobOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && isKind(owner, batchv1.GroupName, "Job") {
		return owner.Name
	}
	return ""
}

// JobLease is for how long the pods of a Job want to stay on their nodes. One that is tried again has less time left than that: it is
// held to the whole.
func JobLease(job *batchv1.Job) time.Duration {
	if job.Spec.ActiveDeadlineSeconds == nil {
		return 0
	}
	return Seconds(*job.Spec.ActiveDeadlineSeconds)
}

// Seconds is a number of seconds, or as long as a duration can be. The API server takes any number.
func Seconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), math.MaxInt64/int64(time.Second))) * time.Second
}
