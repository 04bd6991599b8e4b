// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// source is where policies come from.
type source interface {
	// installed asks whether there are PlacementPolicies at all.
	installed(context.Context) (bool, error)
	// listWatch lists and watches them, and calls a function whenever the API server lets it.
	listWatch(read func()) cache.ListerWatcher
	// pause is the time between two questions.
	pause() time.Duration
}

// watch keeps what is known up to date until the context ends.
func (p *Policies) watch(ctx context.Context, from source) {
	logger := klog.FromContext(ctx)
	context.AfterFunc(ctx, p.edits.stop)
	for {
		there, err := from.installed(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			logger.Error(err, "Asking whether PlacementPolicies are installed")
			p.unreadable(err)
		case there:
			logger.Info("Reading PlacementPolicies")
			p.unread()
			p.follow(ctx, from.listWatch(p.read))
		default:
			logger.V(4).Info("PlacementPolicies are not installed")
			p.none()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(from.pause()):
		}
	}
}

// follow watches until the context ends or the kind is gone. An informer left
// running without the kind would write an error into the log twice a minute, and see it
// come back up to a minute late.
func (p *Policies) follow(ctx context.Context, from cache.ListerWatcher) {
	served, gone := context.WithCancel(ctx)
	defer gone()
	informer := cache.NewSharedIndexInformer(from, &unstructured.Unstructured{}, 0, cache.Indexers{})
	if err := informer.SetTransform(store); err != nil {
		p.unreadable(err)
		return
	}
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			gone()
			return
		}
		p.unreadable(err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if err != nil {
		p.unreadable(err)
		return
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { p.seen(obj) },
		UpdateFunc: func(_, obj any) { p.seen(obj) },
		DeleteFunc: func(obj any) { p.unseen(obj) },
	})
	if err != nil {
		p.unreadable(err)
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(served)
	}()
	if cache.WaitForCacheSync(served.Done(), handler.HasSynced) {
		p.known()
	}
	<-ended
	if ctx.Err() == nil {
		// Another kind of the same name may be there by the time we ask again, and
		// would not mention these.
		p.none()
	}
}

// seen takes a policy in that is new or has changed. A change of its status or
// labels is none.
func (p *Policies) seen(obj any) {
	s, ok := obj.(*stored)
	if !ok {
		return
	}
	p.mu.RLock()
	old := find(p.byNamespace[s.Namespace], s.Name)
	p.mu.RUnlock()
	if old != nil && old.Same(s.policy) {
		return
	}
	p.replace(s.Namespace, func(list []*clusterview.Policy) []*clusterview.Policy { return put(list, s.policy) })
}

func (p *Policies) unseen(obj any) {
	namespace, name, err := cache.SplitMetaNamespaceKey(keyOf(obj))
	if err != nil {
		return
	}
	p.replace(namespace, func(list []*clusterview.Policy) []*clusterview.Policy { return drop(list, name) })
}

// keyOf is the key of an object, also of one whose deletion was missed.
func keyOf(obj any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return ""
	}
	return key
}

// replace changes the policies of one namespace, and wakes the pods for which
// that makes a difference.
func (p *Policies) replace(namespace string, change func([]*clusterview.Policy) []*clusterview.Policy) {
	p.mu.Lock()
	before := p.byNamespace[namespace]
	after := change(before)
	if len(after) == 0 {
		delete(p.byNamespace, namespace)
	} else {
		p.byNamespace[namespace] = after
	}
	isKnown := p.err == nil
	p.mu.Unlock()
	if isKnown {
		p.wake(namespace, before)
	}
}

// known says that what is in byNamespace is all there is.
func (p *Policies) known() {
	p.read()
	p.settle()
}

// read says that the API server lets policies be read.
func (p *Policies) read() {
	unreadable.Set(0)
	p.mu.Lock()
	p.forbiddenSince = time.Time{}
	p.mu.Unlock()
}

// settle has pods placed by what is in byNamespace.
func (p *Policies) settle() {
	p.mu.Lock()
	was := p.err
	p.err = nil
	p.mu.Unlock()
	p.answer.Do(func() { close(p.answered) })
	if was != nil {
		p.waiting.Wake(everyPod)
	}
}

// none says that there are no policies.
func (p *Policies) none() {
	p.mu.Lock()
	before := p.byNamespace
	p.byNamespace = make(map[string][]*clusterview.Policy)
	isKnown := p.err == nil
	p.mu.Unlock()
	for namespace, list := range before {
		if isKnown {
			p.wake(namespace, list)
		}
	}
	p.known()
}

// unread says that there are policies of which none has been read: that there were
// none when their kind was not installed is no knowledge of what there is now.
func (p *Policies) unread() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = errUnread
	}
}

// unreadable says why the policies are not known, unless they are: what was known
// when the API server could last be read holds until it can be read again.
//
// A scheduler without the right to read them goes on as if there were none, after some time. It will not have the right before
// somebody gives it, and pods of namespaces without a policy must not wait for that. The metric says so, and an alert. But
// an API server that has just started forbids what it has not read the roles of yet.
func (p *Policies) unreadable(err error) {
	unreadable.Set(1)
	p.mu.Lock()
	switch {
	case !apierrors.IsForbidden(err):
		p.forbiddenSince = time.Time{}
	case p.forbiddenSince.IsZero():
		since := time.Now()
		p.forbiddenSince = since
		time.AfterFunc(p.forbiddenFor, func() { p.stillForbidden(since) })
	}
	if p.err != nil {
		p.err = fmt.Errorf("PlacementPolicies cannot be read: %w: see whether the API server answers, and the scheduler's right to list and watch placementpolicies", err)
	}
	p.mu.Unlock()
	p.answer.Do(func() { close(p.answered) })
}

// stillForbidden has pods placed as if there were no policies, if it has been forbidden to read them since a time.
func (p *Policies) stillForbidden(since time.Time) {
	p.mu.RLock()
	is := p.forbiddenSince.Equal(since)
	p.mu.RUnlock()
	if is {
		p.settle()
	}
}
