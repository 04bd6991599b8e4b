// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

const secret = "hunter2"

// tellingPod has a secret wherever people put them.
func tellingPod(name string) *corev1.Pod {
	container := corev1.Container{
		Name: "c", Image: "image", Command: []string{secret}, Args: []string{secret}, Env: []corev1.EnvVar{{Name: "PASSWORD", Value: secret}},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{secret}}}},
		Ports:         []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}},
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: secret, "example.com/token": secret, "espalier.dev/placement": "spread=zone",
		}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container}, InitContainers: []corev1.Container{container}, NodeName: "n",
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Command: []string{secret}}}},
			Volumes:             []corev1.Volume{{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}, {Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
			ImagePullSecrets:    []corev1.LocalObjectReference{{Name: secret}},
		},
		Status: corev1.PodStatus{Message: secret, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Message: secret}}, ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: secret, Reason: "Error"}}, LastTerminationState: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: secret}}},
		}, EphemeralContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: secret}}}}},
	}
}

func taken() *Snapshot {
	s := &Snapshot{Taken: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Server: "v1.37.1", Unread: []string{"csinodes: forbidden"}}
	s.Add(tellingPod("p"))
	s.Add(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: tellingPod("p").Spec}}})
	s.Add(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", Annotations: map[string]string{"kubernetes.io/change-cause": secret, "evilkubernetes.io/a": secret}}})
	s.Add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{MountOptions: []string{"password=" + secret}, PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"a": secret}},
	}}})
	s.Add(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Parameters: map[string]string{"key": secret}, MountOptions: []string{secret}})
	s.Add(&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": secret}}}}}})
	s.Add(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"}, Spec: batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(259200)), Template: corev1.PodTemplateSpec{Spec: tellingPod("p").Spec}}})
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "placement.espalier.dev/v1alpha1", "kind": "PlacementPolicy",
		"metadata": map[string]any{"namespace": "ns", "name": "q", "annotations": map[string]any{"a": secret}},
		"spec":     map[string]any{"levels": "malformed"}, "status": map[string]any{"message": secret},
	}}
	s.Add(policy)
	allocation := policy.DeepCopy()
	allocation.SetKind("Allocation")
	s.Add(allocation)
	return s
}

// What is written has no secrets, and all that filters and scores look at.
func TestFile(t *testing.T) {
	before := taken()
	var out bytes.Buffer
	placementtest.Must(t, before.Write(&out))
	if strings.Contains(out.String(), secret) {
		t.Errorf("there is a secret in it: %s", out.String())
	}
	placementtest.WantParts(t, out.String(), "spread=zone", "hostPort", `"claimName":"data"`, `"reason":"Error"`, `"activeDeadlineSeconds":259200`, "malformed")
	after, err := ReadFile(&out)
	placementtest.Must(t, err)
	if !after.Taken.Equal(before.Taken) || after.Server != before.Server || fmt.Sprint(after.Unread) != fmt.Sprint(before.Unread) || len(after.Policies) != 1 || len(after.Tenants) != 1 {
		t.Errorf("got %+v", after)
	}
	pod, deployment := Of[*corev1.Pod](after)[0], Of[*appsv1.Deployment](after)[0]
	pod.TypeMeta, deployment.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	if !equality.Semantic.DeepEqual(pod, Of[*corev1.Pod](before)[0]) || !equality.Semantic.DeepEqual(deployment, Of[*appsv1.Deployment](before)[0]) {
		t.Errorf("the objects are others: %+v", after.Objects)
	}
}

func TestNoSnapshot(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "this is no snapshot",
		"kind: ClusterSnapshot": "this is no snapshot",
		`[]`:                    "it begins with [",
		`{"kind":"ClusterSnapshot","apiVersion":"snapshot.espalier.dev/v1alpha1","objects":{}}`: "it begins with {",
		`{"kind":"ClusterSnapshot","apiVersion":"snapshot.espalier.dev/v1alpha1","objects":[`:   "cannot be read",
		`{"objects":[],"kind":"ClusterSnapshot"}`:                                               `of kind ""`,
		`{"kind":"List"}`:            `of kind "List"`,
		`{"kind":"ClusterSnapshot"}`: `of version ""`,
		`{"kind":"ClusterSnapshot","apiVersion":"snapshot.espalier.dev/v9"}`:                                                                  `of version "snapshot.espalier.dev/v9"`,
		`{"kind":"ClusterSnapshot","apiVersion":"snapshot.espalier.dev/v1alpha1"}`:                                                            "has no objects",
		`{"kind":"ClusterSnapshot","apiVersion":"snapshot.espalier.dev/v1alpha1","objects":[1]}`:                                              "object 0",
		`{"kind":"ClusterSnapshot","apiVersion":"snapshot.espalier.dev/v1alpha1","objects":[{"apiVersion":"v9","kind":"Pod"}]}`:               "object 0",
		`{"kind":"ClusterSnapshot","apiVersion":"snapshot.espalier.dev/v1alpha1","objects":[{"apiVersion":"v1","kind":"Pod","spec":"none"}]}`: "object 0",
	} {
		if _, err := ReadFile(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
}

// api is an API server that has pods, two a page, one object of each kind of ours, and of the other kinds what errs say.
type api struct {
	client.Reader
	pods int
	errs map[string]error
	// maps are the data of ConfigMaps, by their names.
	maps map[string]map[string]string
}

func (a api) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if err := a.errs[fmt.Sprintf("%T", into)]; err != nil {
		return err
	}
	into.SetNamespace(key.Namespace)
	into.SetName(key.Name)
	into.(*corev1.ConfigMap).Data = a.maps[key.Name]
	return nil
}

func (a api) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := a.errs[fmt.Sprintf("%T", list)]; err != nil {
		return err
	}
	if names, is := list.(*metav1.PartialObjectMetadataList); is {
		for name := range a.maps {
			names.Items = append(names.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}})
		}
	}
	if ours, is := list.(*unstructured.UnstructuredList); is {
		one := unstructured.Unstructured{}
		one.SetGroupVersionKind(ours.GroupVersionKind())
		one.SetKind(strings.TrimSuffix(ours.GetKind(), "List"))
		ours.Items = append(ours.Items, one)
	}
	pods, is := list.(*corev1.PodList)
	if !is {
		return nil
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	from := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &from); err != nil {
			return err
		}
	}
	for i := from; i < min(from+2, a.pods); i++ {
		pods.Items = append(pods.Items, *tellingPod(fmt.Sprint("p", i)))
	}
	if from+2 < a.pods {
		pods.Continue = fmt.Sprint(from + 2)
	}
	return nil
}

func TestRead(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "", errors.New("no"))
	unknown := &meta.NoKindMatchError{}
	var mu sync.Mutex
	said := make(map[string]int) // what was read, and how many objects there were then at most
	s, err := Read(t.Context(), api{pods: 5, errs: map[string]error{"*v1.ServiceList": forbidden, "*v1.DeviceClassList": unknown}}, "v1", time.Now(), func(what string, kind, kinds, objects int) {
		mu.Lock()
		defer mu.Unlock()
		said[what] = max(said[what], objects)
		if kind >= kinds {
			t.Errorf("%d of %d kinds", kind, kinds)
		}
	})
	placementtest.Must(t, err)
	if n := len(Of[*corev1.Pod](s)); n != 5 || len(s.Unread) != 1 || !strings.Contains(s.Unread[0], "services") || len(Of[runtime.Object](s)) != 5 {
		t.Errorf("%d pods, unread is %q", n, s.Unread)
	}
	if len(s.Policies) != 2 || len(s.Tenants) != 2 {
		t.Errorf("there are policies %v, and of tenants %v", s.Policies, s.Tenants)
	}
	if len(said) != len(sources()) || said["pods"] < 5 { // with what is read beside them
		t.Errorf("progress is %v", said)
	}
	for _, needed := range []string{"*v1.PodList", "*v1.NodeList"} {
		if _, err := Read(t.Context(), api{errs: map[string]error{needed: forbidden}}, "v1", time.Now(), nil); !apierrors.IsForbidden(err) {
			t.Errorf("without the right to list %s the error is %v", needed, err)
		}
	}
	if _, err := Read(t.Context(), api{errs: map[string]error{"*v1.ServiceList": errors.New("no answer")}}, "v1", time.Now(), nil); err == nil {
		t.Error("what the API server does not answer is taken for nothing")
	}
}

// Of ConfigMaps those are read in which schedulers keep their records, and of these nothing but the record.
func TestRecords(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
	maps := map[string]map[string]string{
		"settings": {"failures.json": secret}, "other-failures": {"password": secret}, "espalier-scheduler-failures": {"failures.json": "{}", "password": secret},
	}
	for name, tc := range map[string]struct {
		errs           map[string]error
		records, wants int
	}{
		"all":     {records: 1},
		"no list": {errs: map[string]error{"*v1.PartialObjectMetadataList": forbidden}, wants: 1},
		"no get":  {errs: map[string]error{"*v1.ConfigMap": forbidden}, wants: 1},
		"gone":    {errs: map[string]error{"*v1.ConfigMap": apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "x")}},
	} {
		s, err := Read(t.Context(), api{maps: maps, errs: tc.errs}, "v1", time.Now(), nil)
		placementtest.Must(t, err)
		if found := Of[*corev1.ConfigMap](s); len(found) != tc.records || len(s.Unread) != tc.wants {
			t.Errorf("%s: the records are %v, unread is %q", name, found, s.Unread)
		}
		var out bytes.Buffer
		if err := s.Write(&out); err != nil || strings.Contains(out.String(), secret) {
			t.Errorf("%s: %v, it is written as %s", name, err, &out)
		}
	}
}
