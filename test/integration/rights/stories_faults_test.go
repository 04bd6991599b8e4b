// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// workload makes a ReplicaSet. No controller is there: its pods are made by owned.
func (s *stage) workload(namespace, name string) *appsv1.ReplicaSet {
	s.Helper()
	labels := map[string]string{"app": name}
	set, err := cluster.client.AppsV1().ReplicaSets(namespace).Create(s.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: s.pod("").Spec},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	return set
}

// owned makes a pod of the workload, and waits until it has a node.
func (s *stage) owned(set *appsv1.ReplicaSet, node string) (*corev1.Pod, error) {
	s.Helper()
	pod := s.pod("")
	pod.Namespace, pod.Name, pod.GenerateName, pod.Labels = set.Namespace, "", set.Name+"-", set.Spec.Template.Labels
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	created := s.create(pod)
	return created, s.bound(created)
}

const failed = `{"phase":"Failed","containerStatuses":[{"name":"c","image":"i","imageID":"i","restartCount":0,"ready":false,"started":false,"state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}`

// recorded waits until the record knows a failure of the workload.
func (s *stage) recorded(name string) error {
	return s.wait("the failure of "+name+" in the record", func() error {
		record, err := cluster.client.CoreV1().ConfigMaps(s.name).Get(s.Context(), s.name+"-failures", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if content := fmt.Sprint(record.Data); !strings.Contains(content, name) {
			return errors.New("it is not there: " + content)
		}
		return nil
	})
}

// remembers: what fails is written down for the next scheduler.
func remembers(s *stage) error {
	pod, err := s.owned(s.workload(s.name, "failing"), s.name)
	if err != nil {
		return err
	}
	s.status(pod, failed)
	return s.recorded("failing")
}

// listens: what kubelets report by events alone is heard of.
func listens(s *stage) error {
	pod, err := s.owned(s.workload(s.name, "boxed"), s.name)
	if err != nil {
		return err
	}
	made(s, cluster.client.CoreV1().Events(s.name).Create, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "boxed-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         "FailedCreatePodSandBox", Message: "no network", Type: corev1.EventTypeWarning,
		Source: corev1.EventSource{Component: "kubelet", Host: s.name}, ReportingController: "kubelet",
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
	})
	return s.recorded("boxed")
}

// suspects: a node that workloads of two tenants fail on is named in the record, to be tainted.
func suspects(s *stage) error {
	bad, good := s.name+"-bad", s.name+"-good"
	s.node(bad)
	s.node(good)
	for _, namespace := range []string{s.name, s.name + "-b"} {
		set := s.workload(namespace, "tenant")
		for i, node := range []string{good, bad, bad} {
			pod, err := s.owned(set, node)
			if err != nil {
				return err
			}
			if i == 0 {
				now := time.Now().UTC().Format(time.RFC3339)
				s.status(pod, `{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"`+now+`"}]}`)
				continue
			}
			s.status(pod, failed)
		}
	}
	return sees(s, "the node to be named in the record", cluster.client.CoreV1().ConfigMaps(s.name).Get, s.name+"-failures", func(now *corev1.ConfigMap) bool {
		return strings.Contains(now.Data["failures.json"], `"suspects":["`+bad+`"]`)
	})
}
