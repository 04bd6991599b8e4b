// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

//go:embed crd.yaml
var crdYAML []byte

//go:embed events.yaml
var eventsYAML []byte

//go:embed nodes.yaml
var nodesYAML []byte

// resources are those of the objects in the embedded files.
var resources = map[string]schema.GroupVersionResource{
	"CustomResourceDefinition":       {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	"MutatingAdmissionPolicy":        {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"},
	"MutatingAdmissionPolicyBinding": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"},
}

// pollInterval is short: everything waited for happens within a second.
const pollInterval = 50 * time.Millisecond

// InstallNodes puts the Stage resource and what a node does into the cluster, and
// takes away all stages of an earlier run, its failures with them. The context
// bounds the wait.
//
// Pods must come later, by InstallPods, when kwok holds the lease of some node: a kwok
// that starts with pods, and at which kind it starts is chance, never asks whether a
// pod's node is its own, and then it goes on playing the pods of stopped nodes.
func InstallNodes(ctx context.Context, client dynamic.Interface) error {
	if err := create(ctx, client, crdYAML); err != nil {
		return fmt.Errorf("creating the definition of stages: %w", err)
	}
	if err := create(ctx, client, eventsYAML); err != nil {
		return fmt.Errorf("creating the policy for the events of kwok: %w", err)
	}
	if err := create(ctx, client, nodesYAML); err != nil {
		return fmt.Errorf("creating the policy for new nodes: %w", err)
	}
	// A definition is served a moment after it is created.
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := client.Resource(stageGVR).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		return err == nil, notFoundIsNil(err)
	})
	if err != nil {
		return fmt.Errorf("clearing the stages: %w", err)
	}
	return putAll(ctx, client, Nodes())
}

// create creates the objects of an embedded file that are not there yet.
func create(ctx context.Context, client dynamic.Interface, file []byte) error {
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(file), len(file)); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading it: %w", err)
		}
		resource := resources[object.GetKind()]
		_, err = client.Resource(resource).Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) { // before Kubernetes 1.36 policies that change objects are a beta
			resource.Version = "v1beta1"
			object.SetAPIVersion(resource.GroupVersion().String())
			_, err = client.Resource(resource).Create(ctx, object, metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

// InstallPods puts what a pod does into the cluster: well, or ill at its own wish.
func InstallPods(ctx context.Context, client dynamic.Interface) error {
	stages := Pods()
	for _, kind := range FailureKinds() {
		stages = append(stages, kind.onAnnotatedPods()...)
	}
	return putAll(ctx, client, stages)
}

func putAll(ctx context.Context, client dynamic.Interface, stages []Stage) error {
	for _, stage := range stages {
		if err := put(ctx, client, stage); err != nil {
			return fmt.Errorf("creating stage %q: %w", stage.Name, err)
		}
	}
	return nil
}

func notFoundIsNil(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// put creates the stage, or replaces one of the same name.
func put(ctx context.Context, client dynamic.Interface, stage Stage) error {
	object := stage.Object()
	_, err := client.Resource(stageGVR).Create(ctx, object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	old, err := client.Resource(stageGVR).Get(ctx, stage.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.SetResourceVersion(old.GetResourceVersion())
	_, err = client.Resource(stageGVR).Update(ctx, object, metav1.UpdateOptions{})
	return err
}

// remove deletes the stage; one that is not there is no error.
func remove(ctx context.Context, client dynamic.Interface, name string) error {
	return notFoundIsNil(client.Resource(stageGVR).Delete(ctx, name, metav1.DeleteOptions{}))
}
