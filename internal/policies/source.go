// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

const (
	// asking is the time between two questions whether the kind is installed. Anybody
	// may ask it, and an answer is some hundred bytes.
	asking = 5 * time.Second
	// answering is how long an answer may take.
	answering = 10 * time.Second
)

// apiServer is the source of a kind outside of tests.
type apiServer struct {
	client   rest.Interface
	policies dynamic.Interface
	resource string
}

// newAPIServers makes a client of its own for all kinds: the scheduler's speaks protobuf, in which
// custom resources are not served.
func newAPIServers(config *rest.Config) (servers [kinds]*apiServer, err error) {
	scheme := runtime.NewScheme()
	if err := placementv1alpha1.AddToScheme(scheme); err != nil {
		return servers, err
	}
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.APIPath, config.GroupVersion = "/apis", &placementv1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return servers, err
	}
	policies, err := dynamic.NewForConfig(config)
	for k := range kinds {
		servers[k] = &apiServer{client, policies, k.resource()}
	}
	return servers, err
}

// installed asks for the resources of our group. Listing policies would answer the
// same question, but a scheduler without the right to list them is told that it has
// not, and could not tell a cluster without policies from one whose it may not read.
func (s *apiServer) installed(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	path := "/apis/" + placementv1alpha1.SchemeGroupVersion.String()
	var list metav1.APIResourceList
	err := s.client.Get().AbsPath(path).Do(ctx).Into(&list)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Name == s.resource
	}), err
}

func (s *apiServer) listWatch(read func()) cache.ListerWatcher {
	all := s.policies.Resource(placementv1alpha1.SchemeGroupVersion.WithResource(s.resource))
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
	}, s.policies)
}

func (s *apiServer) pause() time.Duration { return asking }
