// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

const (
	placementAnnotation = "espalier.dev/placement"
	workloadLabel       = "espalier.dev/workload"

	// podMilliCPU is what one pod of a story asks for, so that a node's room is a number of pods.
	podMilliCPU = 100
)

// template is a pod of the app on the story's nodes, with the placement as its annotation unless "".
func (s *story) template(app, placement string, change ...func(*corev1.PodSpec)) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			SchedulerName: s.scheduler,
			NodeSelector:  map[string]string{storyLabel: s.name},
			Containers: []corev1.Container{{
				Name: "app", Image: "busybox:1.37",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: *resource.NewMilliQuantity(podMilliCPU, resource.DecimalSI),
				}},
			}},
			TerminationGracePeriodSeconds: ptr.To[int64](0),
		},
	}
	if placement != "" {
		template.Annotations[placementAnnotation] = placement
	}
	for _, f := range change {
		f(&template.Spec)
	}
	return template
}

func selects(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// deploy creates a Deployment.
func (s *story) deploy(app string, replicas int32, placement string, change ...func(*corev1.PodSpec)) {
	s.Helper()
	s.deployment(app, replicas, s.template(app, placement, change...))
}

// deployment creates a Deployment of a template.
func (s *story) deployment(app string, replicas int32, template corev1.PodTemplateSpec) {
	s.Helper()
	s.make(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       appsv1.DeploymentSpec{Replicas: new(replicas), Selector: selects(app), Template: template},
	})
}

// deployed is deploy, and settled.
func (s *story) deployed(app string, replicas int, placement string, change ...func(*corev1.PodSpec)) *rig.Observation {
	s.Helper()
	s.deploy(app, int32(replicas), placement, change...)
	return s.settled(app, replicas)
}

// patch changes a Deployment by a merge patch.
func (s *story) patch(app, format string, args ...any) {
	s.Helper()
	s.alter(named[appsv1.Deployment](s, app), format, args...)
}

func (s *story) scale(app string, replicas int) {
	s.Helper()
	s.patch(app, `{"spec":{"replicas":%d}}`, replicas)
}

// scaledTo is scale, and settled.
func (s *story) scaledTo(app string, replicas int) *rig.Observation {
	s.Helper()
	s.scale(app, replicas)
	return s.settled(app, replicas)
}

// roll starts a rolling update and waits until the Deployment says that it is through.
func (s *story) roll(app, revision string) {
	s.Helper()
	s.patch(app, `{"spec":{"template":{"metadata":{"annotations":{"e2e.espalier.dev/revision":%q}}}}}`, revision)
	s.available(app, "the rolling update to "+revision)
}

// available waits until the Deployment says that all of its pods are there, and ready. Who scales before that has the ReplicaSet's controller remove
// those first that it does not know to be ready, though they are.
func (s *story) available(app, what string) {
	s.Helper()
	becomes(s, app, what, func(d *appsv1.Deployment) error {
		want := *d.Spec.Replicas
		switch st := d.Status; {
		case st.ObservedGeneration < d.Generation:
			return errors.New("the controller has not seen it")
		case st.UpdatedReplicas != want || st.Replicas != want || st.AvailableReplicas != want:
			return fmt.Errorf("of %d pods wanted there are %d, %d of them updated, %d available", want, st.Replicas, st.UpdatedReplicas, st.AvailableReplicas)
		}
		return nil
	})
}

// pod creates a bare pod.
func (s *story) pod(name string, template corev1.PodTemplateSpec) {
	s.Helper()
	template.ObjectMeta.Name = name
	s.make(&corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec})
}

// podsOf are the pods of an app.
func (s *story) podsOf(app string) []corev1.Pod {
	s.Helper()
	return s.podsWith("app="+app, "")
}

// podsWith are the story's pods with labels, and on a node, if any is given.
func (s *story) podsWith(selector, node string) []corev1.Pod {
	s.Helper()
	options := metav1.ListOptions{LabelSelector: selector}
	if node != "" {
		options.FieldSelector = "spec.nodeName=" + node
	}
	list, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, options)
	s.must(err, "listing pods")
	return list.Items
}

// asks sets what the pod asks for in units of podMilliCPU.
func asks(pods int64) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(pods*podMilliCPU, resource.DecimalSI)
	}
}
