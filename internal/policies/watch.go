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
	// installed asks whether there is the kind at all.
	installed(context.Context) (bool, error)
	// listWatch lists and watches them, and calls a function whenever the API server lets it.
	listWatch(read func()) cache.ListerWatcher
	// pause is the time between two questions.
	pause() time.Duration
}

// watch keeps what is known of a kind up to date until the context ends.
func (p *Policies) watch(ctx context.Context, k kind, from source) {
	logger := klog.FromContext(ctx).WithValues("kind", k)
	for {
		there, err := from.installed(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			logger.Error(err, "Asking whether policies are installed")
			p.unreadable(k, err)
		case there:
			logger.Info("Reading policies")
			p.unread(k)
			p.follow(ctx, k, from.listWatch(func() { p.read(k) }))
		default:
			logger.V(4).Info("Policies are not installed")
			p.none(k)
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
func (p *Policies) follow(ctx context.Context, k kind, from cache.ListerWatcher) {
	served, gone := context.WithCancel(ctx)
	defer gone()
	informer := cache.NewSharedIndexInformer(from, &unstructured.Unstructured{}, 0, cache.Indexers{})
	if err := informer.SetTransform(store); err != nil {
		p.unreadable(k, err)
		return
	}
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			gone()
			return
		}
		p.unreadable(k, err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if err != nil {
		p.unreadable(k, err)
		return
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { p.seen(obj) },
		UpdateFunc: func(_, obj any) { p.seen(obj) },
		DeleteFunc: func(obj any) { p.unseen(obj) },
	})
	if err != nil {
		p.unreadable(k, err)
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(served)
	}()
	if cache.WaitForCacheSync(served.Done(), handler.HasSynced) {
		p.known(k)
	}
	<-ended
	if ctx.Err() == nil {
		// Another kind of the same name may be there by the time we ask again, and
		// would not mention these.
		p.none(k)
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

// replace changes the policies of one namespace, or of the cluster, and wakes the pods for which
// that makes a difference.
func (p *Policies) replace(namespace string, change func([]*clusterview.Policy) []*clusterview.Policy) {
	p.mu.Lock()
	before, err := p.before(namespace)
	p.set(namespace, change(p.byNamespace[namespace]))
	p.mu.Unlock()
	if err == nil {
		p.wake(namespace, before)
	}
}

// before is what wake has to know of a change: the policies that have a say in a namespace, or those of the cluster. The caller
// holds mu.
func (p *Policies) before(namespace string) ([]*clusterview.Policy, error) {
	if namespace == everywhere {
		return p.byNamespace[everywhere], p.err()
	}
	return p.in(namespace)
}

// set keeps the policies of a namespace, or of the cluster. The caller holds mu for writing.
func (p *Policies) set(namespace string, list []*clusterview.Policy) {
	if len(list) == 0 {
		delete(p.byNamespace, namespace)
	} else {
		p.byNamespace[namespace] = list
	}
	if namespace == everywhere {
		clear(p.effective)
	} else {
		delete(p.effective, namespace)
	}
}

// known says that what is in byNamespace is all there is of a kind.
func (p *Policies) known(k kind) {
	p.read(k)
	p.settle(k)
}

// read says that the API server lets a kind be read.
func (p *Policies) read(k kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[k].forbiddenSince = time.Time{}
	p.noteReadable(k, true)
}

// settle has pods placed by what is in byNamespace of a kind.
func (p *Policies) settle(k kind) {
	p.mu.Lock()
	was := p.of[k].err
	p.of[k].err = nil
	isKnown := p.err() == nil
	p.answers(k)
	p.mu.Unlock()
	if was != nil && isKnown {
		p.waiting.Wake(everyPod)
	}
}

// answers says that there is an answer about a kind. The caller holds mu for writing.
func (p *Policies) answers(k kind) {
	if p.of[k].answered {
		return
	}
	p.of[k].answered = true
	for _, of := range p.of {
		if !of.answered {
			return
		}
	}
	close(p.answered)
}

// none says that there are no policies of a kind.
func (p *Policies) none(k kind) {
	p.mu.Lock()
	befores := make(map[string][]*clusterview.Policy)
	for namespace := range p.byNamespace {
		if (namespace == everywhere) != (k == ofCluster) {
			continue
		}
		if before, err := p.before(namespace); err == nil {
			befores[namespace] = before
		}
		p.set(namespace, nil)
	}
	p.mu.Unlock()
	for namespace, before := range befores {
		p.wake(namespace, before)
	}
	p.known(k)
}

// unread says that there are policies of which none has been read: that there were
// none when their kind was not installed is no knowledge of what there is now.
func (p *Policies) unread(k kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[k].err == nil {
		p.of[k].err = errUnread
	}
}

// unreadable says why the policies of a kind are not known, unless they are: what was known
// when the API server could last be read holds until it can be read again.
//
// A scheduler without the right to read them goes on as if there were none, after some time. It will not have the right before
// somebody gives it, and pods of namespaces without a policy must not wait for that. The metric says so, and an alert. But
// an API server that has just started forbids what it has not read the roles of yet.
func (p *Policies) unreadable(k kind, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteReadable(k, false)
	of := &p.of[k]
	switch {
	case !apierrors.IsForbidden(err):
		of.forbiddenSince = time.Time{}
	case of.forbiddenSince.IsZero():
		since := time.Now()
		of.forbiddenSince = since
		time.AfterFunc(p.forbiddenFor, func() { p.stillForbidden(k, since) })
	}
	if of.err != nil {
		of.err = fmt.Errorf("policies cannot be read: %w", err)
	}
	p.answers(k)
}

// stillForbidden has pods placed as if there were no policies of a kind, if it has been forbidden to read them since a time.
func (p *Policies) stillForbidden(k kind, since time.Time) {
	p.mu.RLock()
	is := p.of[k].forbiddenSince.Equal(since)
	p.mu.RUnlock()
	if is {
		p.settle(k)
	}
}
