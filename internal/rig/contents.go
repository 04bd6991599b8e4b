// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// Object names an object of a cluster.
type Object struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

func (o Object) String() string {
	return o.Resource.Resource + "." + o.Resource.Group + " " + o.Namespace + "/" + o.Name
}

// Contents names all objects of a cluster, but for those that come and go by themselves, as Events
// and the Leases of nodes.
func Contents(ctx context.Context, config *rest.Config) (map[Object]types.UID, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // that some kinds are old
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a discovery client: %w", err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	lists, err := disco.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("asking for the kinds of the cluster: %w", err)
	}
	all := map[Object]types.UID{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if r.Name == "events" || !slices.Contains(r.Verbs, "list") {
				continue
			}
			objects, err := client.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				continue // a kind that is gone by now
			}
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", r.Name, err)
			}
			for i := range objects.Items {
				o := &objects.Items[i]
				if r.Name == "leases" && o.Namespace == corev1.NamespaceNodeLease {
					continue
				}
				all[Object{gv.WithResource(r.Name), o.Namespace, o.Name}] = o.UID
			}
		}
	}
	return all, nil
}

// Restore removes all objects that were not there before. Those that a controller makes anew are the cluster's own.
func Restore(ctx context.Context, config *rest.Config, before map[Object]types.UID) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	after, err := Contents(ctx, config)
	if err != nil {
		return err
	}
	maps.DeleteFunc(after, func(o Object, _ types.UID) bool { _, was := before[o]; return was })
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	return Poll(ctx, 2*time.Minute, 200*time.Millisecond, "what was added to the cluster to be gone", func() error {
		is, err := Contents(ctx, config)
		if err != nil {
			return err
		}
		var left []error
		for o, uid := range after {
			if is[o] != uid {
				continue
			}
			left = append(left, fmt.Errorf("%s is there", o), client.Resource(o.Resource).Namespace(o.Namespace).Delete(ctx, o.Name, now))
		}
		return errors.Join(left...)
	})
}
