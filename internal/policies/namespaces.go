// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// watchNamespaces follows the labels of namespaces. The informer is that of the scheduler, which its own plugins have for
// the affinity of pods: it has synced before the first pod is placed.
func (p *Policies) watchNamespaces(informer coreinformers.NamespaceInformer) error {
	p.namespaces = informer.Lister()
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if namespace, ok := obj.(*corev1.Namespace); ok {
				p.arrived(namespace.Name)
			}
		},
		UpdateFunc: func(before, obj any) {
			was, ok := before.(*corev1.Namespace)
			namespace, alsoOK := obj.(*corev1.Namespace)
			if ok && alsoOK && !maps.Equal(was.Labels, namespace.Labels) {
				p.relabelled(namespace.Name)
			}
		},
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				p.forget(name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching namespaces for ClusterPlacementPolicies: %w", err)
	}
	return nil
}

// labelsOf returns the labels of a namespace. In a simulation namespaces have none.
func (p *Policies) labelsOf(namespace string) (labels.Set, error) {
	if p.namespaces == nil {
		return labels.Set{}, nil
	}
	is, err := p.namespaces.Get(namespace)
	if err != nil {
		return nil, fmt.Errorf("which ClusterPlacementPolicies are for namespace %q is not known yet: wait until the scheduler has seen it: %w", namespace, err)
	}
	return is.Labels, nil
}

// relabelled wakes the pods of a namespace whose labels have changed. Which policies they were refused by, and with which labels, is not
// known any more. Changes in quick succession are gathered as edits of policies are: a pod that is woken passes back-off by.
func (p *Policies) relabelled(namespace string) {
	p.mu.Lock()
	delete(p.effective, namespace)
	matters := len(p.byNamespace[everywhere]) > 0
	p.mu.Unlock()
	wake := func([][]*clusterview.Policy) { p.wakeAll(namespace) }
	if matters && p.edits.gather("labels of "+namespace, nil, wake) {
		p.wakeAll(namespace)
	}
}

// arrived wakes the pods of a namespace that was asked for before it was known.
func (p *Policies) arrived(namespace string) {
	p.mu.Lock()
	waits := p.unknown[namespace]
	delete(p.unknown, namespace)
	p.mu.Unlock()
	if waits {
		p.wakeAll(namespace)
	}
}

// forget forgets a namespace that is gone.
func (p *Policies) forget(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.effective, namespace)
	delete(p.unknown, namespace)
}

func (p *Policies) wakeAll(namespace string) {
	p.waiting.Wake(func(pod *corev1.Pod) bool { return pod.Namespace == namespace })
}
