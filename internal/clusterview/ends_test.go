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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-scheduler/espalier/pkg/placement/lifetime"
)

func annotated(annotations map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: annotations}}
}

func TestEndOf(t *testing.T) {
	end := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        time.Time
		hour        int32
		problem     string
	}{
		"none":      {nil, time.Time{}, 0, ""},
		"an end":    {map[string]string{ValidUntilAnnotation: "2026-01-31T12:00:00Z"}, end, int32(end.Unix() / 3600), ""},
		"elsewhere": {map[string]string{ValidUntilAnnotation: "2026-01-31T13:00:00+01:00"}, end, int32(end.Unix() / 3600), ""},
		"malformed": {map[string]string{ValidUntilAnnotation: "soon"}, time.Time{}, lifetime.FirstHour, `annotation espalier.dev/valid-until: no time "soon"`},
		"empty":     {map[string]string{ValidUntilAnnotation: ""}, time.Time{}, lifetime.FirstHour, "annotation espalier.dev/valid-until: "},
	} {
		node := annotated(tc.annotations)
		is, err := EndOf(node)
		if !is.Equal(tc.want) || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
			t.Errorf("%s: got %v and %v", name, is, err)
		}
		if hour := EndHour(node); hour != tc.hour {
			t.Errorf("%s: the hour is %d, want %d", name, hour, tc.hour)
		}
	}
}

// An end is ours as long as nobody has changed it.
func TestEndIsBy(t *testing.T) {
	end := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	node := annotated(nil)
	if EndIsBy(node, BySchedule) {
		t.Error("a node without an end has one of the schedule")
	}
	SetEnd(node, BySchedule, end)
	if is, err := EndOf(node); err != nil || !is.Equal(end) || !EndIsBy(node, BySchedule) || EndIsBy(node, ByNodeClaim) {
		t.Errorf("the end is %v, %v: %v", is, err, node.Annotations)
	}
	node.Annotations[ValidUntilAnnotation] = "2027-01-31T12:00:00Z"
	if EndIsBy(node, BySchedule) {
		t.Error("an end that somebody else has changed is of the schedule")
	}
	SetEnd(node, ByNodeClaim, time.Time{})
	if len(node.Annotations) != 0 {
		t.Errorf("a node without an end has %v", node.Annotations)
	}
}

func TestUpSince(t *testing.T) {
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	node := annotated(nil)
	node.Status.NodeInfo.BootID = "first"
	if _, ok := UpSince(node); ok || Rebooted(node) {
		t.Error("a node that was not seen before runs since some time")
	}
	SetUpSince(node, since)
	if is, ok := UpSince(node); !ok || !is.Equal(since) || Rebooted(node) {
		t.Errorf("it runs since %v: %t", is, ok)
	}
	node.Status.NodeInfo.BootID = "second"
	if _, ok := UpSince(node); ok || !Rebooted(node) {
		t.Error("another boot is not seen")
	}
	node.Annotations[UpSinceAnnotation] = "yesterday second"
	if _, ok := UpSince(node); ok || Rebooted(node) {
		t.Error("a time that cannot be read is one, or another boot")
	}
}

func TestEndOfClaim(t *testing.T) {
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		expireAfter any
		terminated  string
		want        time.Time
		problem     string
	}{
		"nothing":             {},
		"expires":             {expireAfter: "720h", want: made.Add(720 * time.Hour)},
		"never":               {expireAfter: "Never"},
		"terminated before":   {expireAfter: "720h", terminated: "2026-01-02T00:00:00Z", want: made.Add(24 * time.Hour)},
		"terminated after":    {expireAfter: "1h", terminated: "2026-01-02T00:00:00Z", want: made.Add(time.Hour)},
		"terminated alone":    {terminated: "2026-01-02T00:00:00Z", want: made.Add(24 * time.Hour)},
		"malformed":           {expireAfter: "soon", problem: `NodeClaim c: spec.expireAfter: "soon" is no duration`},
		"negative":            {expireAfter: "-1h", problem: `NodeClaim c: spec.expireAfter: "-1h" is no duration`},
		"overflow":            {expireAfter: "9999999999h", problem: `NodeClaim c: spec.expireAfter: "9999999999h" is no duration`},
		"no text":             {expireAfter: int64(3), problem: "NodeClaim c: "},
		"malformed timestamp": {terminated: "soon", problem: `NodeClaim c: annotation karpenter.sh/nodeclaim-termination-timestamp: no time "soon"`},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}, "status": map[string]any{"nodeName": "n"}}}
			claim.SetName("c")
			claim.SetCreationTimestamp(metav1.NewTime(made))
			if tc.expireAfter != nil {
				claim.Object["spec"] = map[string]any{"expireAfter": tc.expireAfter}
			}
			if tc.terminated != "" {
				claim.SetAnnotations(map[string]string{terminationTimestamp: tc.terminated})
			}
			is, err := EndOfClaim(claim)
			if !is.Equal(tc.want) || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("got %v and %v, want %v and %q", is, err, tc.want, tc.problem)
			}
			if node := NodeOfClaim(claim); node != "n" {
				t.Errorf("its node is %q", node)
			}
		})
	}
}

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
			t.Errorf("%s: got %v and %v, want %v and %q", name, is, err, tc.want, tc.problem)
		}
	}
}

// What says that somebody is about to remove a node, and what of it makes the node a last one for new pods: the rest keeps them off. Conditions
// say so where the gate is on.
func TestLeaving(t *testing.T) {
	tainted := func(key string, effect corev1.TaintEffect) corev1.NodeSpec {
		return corev1.NodeSpec{Taints: []corev1.Taint{{Key: key, Effect: effect}}}
	}
	says := func(is corev1.NodeConditionType, status corev1.ConditionStatus) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: is, Status: status}}
	}
	for name, tc := range map[string]struct {
		spec          corev1.NodeSpec
		conditions    []corev1.NodeCondition
		off, on, soft string // without the gate, and with it
	}{
		"nothing":                    {},
		"another taint":              {spec: tainted("a", corev1.TaintEffectNoSchedule)},
		"a cordon":                   {spec: corev1.NodeSpec{Unschedulable: true}, off: "it is cordoned", on: "it is cordoned"},
		"an autoscaler removes":      {spec: tainted("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule), off: "it has the taint ToBeDeletedByClusterAutoscaler", on: "it has the taint ToBeDeletedByClusterAutoscaler"},
		"an autoscaler may":          {spec: tainted("DeletionCandidateOfClusterAutoscaler", corev1.TaintEffectPreferNoSchedule), off: "it has the taint DeletionCandidateOfClusterAutoscaler", on: "it has the taint DeletionCandidateOfClusterAutoscaler", soft: "DeletionCandidateOfClusterAutoscaler="},
		"Karpenter":                  {spec: tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule), off: "it has the taint karpenter.sh/disrupted", on: "it has the taint karpenter.sh/disrupted"},
		"Karpenter reboots":          {spec: tainted("karpenter.sh/rebooting", corev1.TaintEffectNoSchedule), off: "it has the taint karpenter.sh/rebooting", on: "it has the taint karpenter.sh/rebooting"},
		"the cloud takes it back":    {spec: tainted("cloud.google.com/impending-node-termination", corev1.TaintEffectNoSchedule), off: "it has the taint cloud.google.com/impending-node-termination", on: "it has the taint cloud.google.com/impending-node-termination"},
		"the cloud has shut it down": {spec: tainted("node.cloudprovider.kubernetes.io/shutdown", corev1.TaintEffectNoSchedule), off: "it has the taint node.cloudprovider.kubernetes.io/shutdown", on: "it has the taint node.cloudprovider.kubernetes.io/shutdown"},
		"out of service":             {spec: tainted(corev1.TaintNodeOutOfService, corev1.TaintEffectNoExecute), off: "it has the taint node.kubernetes.io/out-of-service", on: "it has the taint node.kubernetes.io/out-of-service"},
		"a planned change":           {conditions: says("MaintenancePlanned", corev1.ConditionTrue), on: "it has the condition MaintenancePlanned", soft: "MaintenancePlanned="},
		"no planned change":          {conditions: says("MaintenancePlanned", corev1.ConditionFalse)},
		"an unknown one":             {conditions: says("MaintenancePlanned", corev1.ConditionUnknown)},
		"a change":                   {conditions: says("MaintenanceInProgress", corev1.ConditionTrue), on: "it has the condition MaintenanceInProgress", soft: "MaintenanceInProgress="},
		"a drain":                    {conditions: says("DrainInProgress", corev1.ConditionTrue), on: "it has the condition DrainInProgress", soft: "DrainInProgress="},
		"a drain that has ended":     {conditions: says("Drained", corev1.ConditionTrue), on: "it has the condition Drained", soft: "Drained="},
		"a shutdown":                 {conditions: says("GracefulNodeShutdownInProgress", corev1.ConditionTrue), on: "it has the condition GracefulNodeShutdownInProgress", soft: "GracefulNodeShutdownInProgress="},
		"pressure":                   {conditions: says(corev1.NodeDiskPressure, corev1.ConditionTrue)},
		"a cordon and a drain":       {spec: corev1.NodeSpec{Unschedulable: true}, conditions: says("DrainInProgress", corev1.ConditionTrue), off: "it is cordoned", on: "it is cordoned", soft: "DrainInProgress="},
	} {
		node := &corev1.Node{Spec: tc.spec, Status: corev1.NodeStatus{Conditions: tc.conditions}}
		if off, on := leaving(node, false), leaving(node, true); off != tc.off || on != tc.on {
			t.Errorf("%s: it is about to be removed for %q, with the gate for %q; want %q and %q", name, off, on, tc.off, tc.on)
		}
		if got := soft(node, true); got != tc.soft {
			t.Errorf("%s: what makes it soft is %q, want %q", name, got, tc.soft)
		}
		if got := soft(node, false); got != "" && len(tc.conditions) > 0 {
			t.Errorf("%s: without the gate it is soft by %q", name, got)
		}
	}
}
