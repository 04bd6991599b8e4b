// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestLeaseOf(t *testing.T) {
	jobs := func(_, name string) (*batchv1.Job, error) {
		switch name {
		case "week":
			return &batchv1.Job{Spec: batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(7 * 24 * 60 * 60))}}, nil
		case "any":
			return &batchv1.Job{}, nil
		case "late":
			return nil, apierrors.NewNotFound(schema.GroupResource{Group: "batch", Resource: "jobs"}, name)
		}
		return nil, errors.New("no answer")
	}
	of := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: kind, Name: name, Controller: new(true)}}
	}
	for name, tc := range map[string]struct {
		lease    string
		owner    []metav1.OwnerReference
		deadline *int64
		noJobs   bool
		want     time.Duration
		problem  string
	}{
		"nothing":                         {},
		"an annotation":                   {lease: "72h", want: 72 * time.Hour},
		"an annotation before a deadline": {lease: "1h", owner: of("Job", "week"), deadline: new(int64(60)), want: time.Hour},
		"a pod's deadline":                {deadline: new(int64(60)), owner: of("Job", "week"), want: time.Minute},
		"a Job's deadline":                {owner: of("Job", "week"), want: 7 * 24 * time.Hour},
		"deadlines are none":              {owner: of("Job", "week"), deadline: new(int64(60)), noJobs: true},
		"a Job without one":               {owner: of("Job", "any")},
		"no Job":                          {owner: of("Cleaner", "week")},
		"a Job that comes late":           {owner: of("Job", "late"), problem: `the pod's Job "late" is not known yet`},
		"a Job that nobody can read":      {owner: of("Job", "gone"), problem: `reading the pod's Job "gone": no answer`},
		"as long as can be":               {deadline: new(int64(math.MaxInt64)), want: time.Duration(math.MaxInt64).Truncate(time.Second)},
		"a negative deadline":             {deadline: new(int64(-5))},
		"a malformed lease":               {lease: "3d", owner: of("Job", "week"), problem: `annotation espalier.dev/lease: no duration "3d"`},
		"a negative lease":                {lease: "-1h", problem: `annotation espalier.dev/lease: `},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", OwnerReferences: tc.owner}, Spec: corev1.PodSpec{ActiveDeadlineSeconds: tc.deadline}}
			if tc.lease != "" {
				pod.Annotations = map[string]string{LeaseAnnotation: tc.lease}
			}
			known := jobs
			if tc.noJobs {
				known = nil
			}
			is, err := LeaseOf(pod, known)
			if is != tc.want || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("got %v and %v, want %v and %q", is, err, tc.want, tc.problem)
			}
		})
	}
}
