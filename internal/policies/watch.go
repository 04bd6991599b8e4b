// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
)

// handler takes in what is seen of a kind.
func (p *Policies) handler(k kind) optionalkind.Handler {
	return optionalkind.Handler{
		Store: store, Seen: p.seen, Gone: p.gone, None: func() { p.none(k) }, Readable: p.noteReadable,
		Known: func() {
			if p.err() == nil {
				p.waiting.Wake(everyPod)
			}
		},
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

func (p *Policies) gone(key string) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return
	}
	p.replace(namespace, func(list []*clusterview.Policy) []*clusterview.Policy { return drop(list, name) })
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
}
