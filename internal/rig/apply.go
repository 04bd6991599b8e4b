// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Applier applies manifests as `kubectl apply --server-side` does.
type Applier struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

// NewApplier makes an Applier for the cluster behind config.
func NewApplier(config *rest.Config) (*Applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	return &Applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

// Apply applies all documents of one file. Objects without a namespace of their own go to the given one.
func (a *Applier) Apply(ctx context.Context, files fs.FS, name, namespace string) error {
	objects, err := Decode(files, name)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := a.ApplyObject(ctx, obj, namespace); err != nil {
			return fmt.Errorf("applying %s %s of %s: %w", obj.GetKind(), obj.GetName(), name, err)
		}
	}
	return nil
}

// Rights applies what lets the scheduler and the controller run with the service
// accounts of the manifests, and nothing that would start one in the cluster.
func (a *Applier) Rights(ctx context.Context, files fs.FS) error {
	for _, name := range []string{"base/serviceaccount.yaml", "base/rbac.yaml", "base/controller-rbac.yaml"} {
		if err := a.Apply(ctx, files, name, ""); err != nil {
			return err
		}
	}
	return nil
}

// Definitions installs all kinds of the project's own API.
func (a *Applier) Definitions(ctx context.Context, files fs.FS) error {
	names, err := fs.Glob(files, "crds/*_*.yaml")
	if err != nil || len(names) == 0 {
		return fmt.Errorf("there are no kinds in crds: %w", err)
	}
	for _, name := range names {
		if err := a.Apply(ctx, files, name, ""); err != nil {
			return err
		}
	}
	return nil
}

// ApplyObject applies one object. One without a namespace of its own goes to the given one.
func (a *Applier) ApplyObject(ctx context.Context, obj *unstructured.Unstructured, namespace string) error {
	gvk := obj.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if obj.GetNamespace() != "" {
			namespace = obj.GetNamespace()
		}
		client = a.client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = client.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "espalier-rig", Force: true})
	return err
}

// Decode reads the objects of one YAML file.
func Decode(files fs.FS, name string) ([]*unstructured.Unstructured, error) {
	content, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		obj := &unstructured.Unstructured{}
		switch err := decoder.Decode(obj); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("reading %s, document %d: %w", name, len(objects)+1, err)
		case len(obj.Object) > 0:
			objects = append(objects, obj)
		}
	}
}
