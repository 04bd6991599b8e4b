// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesampling

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/pkg/placement/sampling"
)

// groups are the nodes by the value of a label. They are put together anew when a node has come or gone, or has another
// value: not for every pod, which would look at as many nodes as there are.
type groups struct {
	key   string
	nodes corelisters.NodeLister

	mu     sync.Mutex // guards what follows
	stale  bool
	byName map[string]*sampling.Group
	sorted []*sampling.Group
}

func newGroups(nodes coreinformers.NodeInformer, key string) (*groups, error) {
	g := &groups{key: key, nodes: nodes.Lister(), stale: true, byName: make(map[string]*sampling.Group)}
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { g.invalidate() },
		DeleteFunc: func(any) { g.invalidate() },
		UpdateFunc: func(before, after any) {
			b, ok := before.(*corev1.Node)
			a, alsoOK := after.(*corev1.Node)
			if !ok || !alsoOK || a.Labels[key] != b.Labels[key] {
				g.invalidate()
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	return g, nil
}

func (g *groups) invalidate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stale = true
}

// list returns the groups by name. A group that stays keeps its turn.
func (g *groups) list() []*sampling.Group {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stale {
		return g.sorted
	}
	all, err := g.nodes.List(labels.Everything())
	if err != nil {
		return g.sorted // an informer's lister lists from memory
	}
	slices.SortFunc(all, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, is := range g.byName {
		is.Nodes = nil
	}
	for _, n := range all {
		value := n.Labels[g.key]
		if g.byName[value] == nil {
			g.byName[value] = &sampling.Group{}
		}
		g.byName[value].Nodes = append(g.byName[value].Nodes, n.Name)
	}
	maps.DeleteFunc(g.byName, func(_ string, is *sampling.Group) bool { return len(is.Nodes) == 0 })
	g.sorted = nil
	for _, value := range slices.Sorted(maps.Keys(g.byName)) {
		g.sorted = append(g.sorted, g.byName[value])
	}
	g.stale = false
	return g.sorted
}
