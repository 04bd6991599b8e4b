// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// admit applies a file of manifests/admission for the story's namespace alone: its
// objects get names of their own, and its bindings a selector.
func (s *story) admit(file string) {
	s.Helper()
	applier, err := rig.NewApplier(world.config)
	s.must(err, "making an applier")
	list, err := rig.Decode(manifests.Files, file)
	s.must(err, "reading "+file)
	for _, obj := range list {
		obj.SetName(s.name + "." + obj.GetName())
		if name, found, _ := unstructured.NestedString(obj.Object, "spec", "policyName"); found {
			s.must(unstructured.SetNestedField(obj.Object, s.name+"."+name, "spec", "policyName"), "renaming")
			here := map[string]any{corev1.LabelMetadataName: s.ns}
			s.must(unstructured.SetNestedMap(obj.Object, here, "spec", "matchResources", "namespaceSelector", "matchLabels"), "binding")
		}
		s.must(applier.ApplyObject(s.ctx, obj, ""), "applying "+obj.GetName())
		s.Cleanup(func() {
			if err := world.objects.Delete(context.Background(), obj); err != nil {
				s.Errorf("deleting %s: %v", obj.GetName(), err)
			}
		})
	}
}

// try creates a pod in a dry run, and returns it as it would be.
func (s *story) try(placement, scheduler string) (*corev1.Pod, error) {
	return s.tryLabelled(placement, scheduler, nil)
}

// tryLabelled is try with more labels.
func (s *story) tryLabelled(placement, scheduler string, labels map[string]string) (*corev1.Pod, error) {
	template := s.template("tried", placement)
	template.Name, template.Spec.SchedulerName = "tried", scheduler
	maps.Copy(template.Labels, labels)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	return s.client.CoreV1().Pods(s.ns).Create(s.ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// With the admission policy, a malformed annotation is refused when it is written, on
// a pod and on what makes pods.
func TestMalformedAnnotationIsRefusedAtCreation(t *testing.T) {
	s := begin(t, spread.core())
	s.admit("admission/annotations.yaml")
	s.until("the admission policy to be in force", func() error {
		_, err := s.try("sprd="+zoneLabel, s.scheduler)
		if err == nil {
			return errors.New("a malformed annotation is let pass")
		}
		for _, part := range []string{placementAnnotation, `"sprd=` + zoneLabel + `"`, "use spread=PROPERTY"} {
			if !strings.Contains(err.Error(), part) {
				s.Fatalf("the refusal does not say %q: %v", part, err)
			}
		}
		return nil
	})
	_, err := s.try("spread="+zoneLabel+";weight.a=2, pack=node.labels.rack;nodesWithoutKey=exclude", s.scheduler)
	s.must(err, "creating a pod whose annotation can be read")
	s.deploy("app", 0, "spread="+zoneLabel)
	is := get[appsv1.Deployment](s, "app")
	bad := is.DeepCopy()
	bad.Spec.Template.Annotations[placementAnnotation] = "spread=node.id"
	if err := world.objects.Patch(s.ctx, bad, client.MergeFrom(is)); err == nil || !strings.Contains(err.Error(), `"node.id"`) {
		s.Errorf("a Deployment is given a malformed annotation: %v", err)
	}
}

// The example makes Espalier the scheduler of a namespace.
func TestSchedulerNameByNamespace(t *testing.T) {
	s := begin(t, spread.core())
	s.admit("admission/scheduler-name.yaml")
	s.alter(named[corev1.Namespace](s, s.ns), `{"metadata":{"labels":{"espalier.dev/default-scheduler":"true"}}}`)
	s.until("the admission policy to be in force", func() error {
		pod, err := s.try("", "")
		if err == nil && pod.Spec.SchedulerName != rig.SchedulerName {
			err = fmt.Errorf("the pod is for %s", pod.Spec.SchedulerName)
		}
		return err
	})
	// Espalier's own pods are for the scheduler that runs already: for itself it could never start.
	for _, name := range []string{rig.SchedulerName, rig.ControllerName} {
		own, err := s.tryLabelled("", "", map[string]string{"app.kubernetes.io/name": name})
		s.must(err, "creating a pod as of "+name)
		if own.Spec.SchedulerName != corev1.DefaultSchedulerName {
			s.Errorf("a pod of %s itself is for %s, want %s", name, own.Spec.SchedulerName, corev1.DefaultSchedulerName)
		}
	}
	pod, err := s.try("", "another")
	if err != nil || pod.Spec.SchedulerName != "another" {
		s.Errorf("a pod with a scheduler of its own: %v, %v", pod.Spec.SchedulerName, err)
	}
}
