// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package optionalkind

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	// asking is the time between two questions whether the kind is installed. Anybody
	// may ask it, and an answer is some hundred bytes.
	asking = 5 * time.Second
	// answering is how long an answer may take.
	answering = 10 * time.Second
)

// APIServer is the source of a kind outside of tests.
type APIServer struct {
	client   rest.Interface
	objects  dynamic.Interface
	resource schema.GroupVersionResource
}

// APIServers returns the sources of some resources of a group and version. They have clients of their own: the scheduler's
// speaks protobuf, in which custom resources are not served.
func APIServers(config *rest.Config, of schema.GroupVersion, resources ...string) (servers []*APIServer, err error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, of)
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.APIPath, config.GroupVersion = "/apis", &of
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", of, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", of, err)
	}
	for _, resource := range resources {
		servers = append(servers, &APIServer{client, objects, of.WithResource(resource)})
	}
	return servers, nil
}

// Installed asks for the resources of the group. Listing objects would answer the
// same question, but a scheduler without the right to list them is told that it has
// not, and could not tell a cluster without objects from one whose it may not read.
func (s *APIServer) Installed(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	var list metav1.APIResourceList
	err := s.client.Get().AbsPath("/apis/" + s.resource.GroupVersion().String()).Do(ctx).Into(&list)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Name == s.resource.Resource
	}), err
}

// ListWatch lists and watches the objects.
func (s *APIServer) ListWatch(read func()) cache.ListerWatcher {
	all := s.objects.Resource(s.resource)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := all.List(ctx, o)
			if err == nil {
				read()
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := all.Watch(ctx, o)
			if err == nil {
				read()
			}
			return w, err
		},
	}, s.objects)
}

// Pause is the time between two questions.
func (s *APIServer) Pause() time.Duration { return asking }
