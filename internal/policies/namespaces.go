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
)

// watchNamespaces follows the labels of namespaces. The informer is that of the scheduler, which its own plugins have for
// the affinity of pods: it has synced before the first pod is placed.
func (p *Policies) watchNamespaces(informer coreinformers.NamespaceInformer) error {
	p.namespaces = informer.Lister()
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if namespace, ok := obj.(*corev1.Namespace); ok {
				p.relabelled(namespace.Name)
			}
		},
		UpdateFunc: func(before, obj any) {
			was, ok := before.(*corev1.Namespace)
			namespace, alsoOK := obj.(*corev1.Namespace)
			if ok && alsoOK && !maps.Equal(was.Labels, namespace.Labels) {
				p.relabelled(namespace.Name)
			}
		},
		DeleteFunc: func(obj any) { p.relabelled(keyOf(obj)) },
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

// relabelled wakes the pods of a namespace that is there now, or whose labels have changed, where that makes a difference.
func (p *Policies) relabelled(namespace string) {
	p.mu.Lock()
	before, wasKnown := p.effective[namespace]
	delete(p.effective, namespace)
	matters := len(p.byNamespace[everywhere]) > 0
	p.mu.Unlock()
	switch {
	case !matters:
	case wasKnown:
		p.wake(namespace, before)
	default:
		// Pods may have been refused because it was not known.
		p.waiting.Wake(func(pod *corev1.Pod) bool { return pod.Namespace == namespace })
	}
}
