// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package optionalkind

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Source is where the objects come from.
type Source interface {
	// Installed asks whether there is the kind at all.
	Installed(context.Context) (bool, error)
	// ListWatch lists and watches them, and calls a function whenever the API server lets it.
	ListWatch(read func()) cache.ListerWatcher
	// Pause is the time between two questions.
	Pause() time.Duration
}

// Watch keeps what is known of the kind up to date until the context ends.
func (k *Kind) Watch(ctx context.Context, from Source) {
	logger := klog.FromContext(ctx).WithValues("resource", k.resource)
	for {
		there, err := from.Installed(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			logger.Error(err, "Asking whether a kind is installed")
			k.Fail(err)
		case there:
			logger.Info("Reading the objects of a kind")
			k.Unread()
			k.follow(ctx, from.ListWatch(k.Read))
		default:
			logger.V(4).Info("A kind is not installed")
			k.None()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(from.Pause()):
		}
	}
}

// follow watches until the context ends or the kind is gone. An informer left
// running without the kind would write an error into the log twice a minute, and see it
// come back up to a minute late.
func (k *Kind) follow(ctx context.Context, from cache.ListerWatcher) {
	served, gone := context.WithCancel(ctx)
	defer gone()
	informer := cache.NewSharedIndexInformer(from, &unstructured.Unstructured{}, 0, cache.Indexers{})
	if err := informer.SetTransform(k.handler.Store); err != nil {
		k.Fail(err)
		return
	}
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			gone()
			return
		}
		k.Fail(err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if err != nil {
		k.Fail(err)
		return
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    k.handler.Seen,
		UpdateFunc: func(_, obj any) { k.handler.Seen(obj) },
		DeleteFunc: func(obj any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				k.handler.Gone(key)
			}
		},
	})
	if err != nil {
		k.Fail(err)
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(served)
	}()
	if cache.WaitForCacheSync(served.Done(), handler.HasSynced) {
		k.Settle()
	}
	<-ended
	if ctx.Err() == nil {
		// Another kind of the same name may be there by the time we ask again, and
		// would not mention these.
		k.None()
	}
}
