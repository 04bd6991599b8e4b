// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"k8s.io/utils/lru"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

// maxNeeds bounds the needs of which answers are kept: some 300 KiB each on 5,000
// nodes. Most clusters have many workloads and few sizes of pods.
const maxNeeds = 16

// answers are what the filters said of nodes, each as it was at a version of the census,
// to pods that they cannot tell apart.
//
// A tree has a memory of its own, but whose pods are spread is nothing to the filters:
// of a hundred workloads in turn each would ask anew about every node on which one of
// the others has put a pod, and all about all nodes in the beginning.
type answers map[string]answer

type answer struct {
	changed uint64
	fits    bool
}

// library is the answers by the needs that they were given to, those used last.
type library struct{ byNeeds *lru.Cache }

func newLibrary() library { return library{lru.New(maxNeeds)} }

// to returns the answers to pods with such needs, in a cluster of so many nodes. What is
// said of a pod with needs "" is not kept.
//
// When most answers must be of nodes that are gone, all are forgotten: where nodes come
// and go under new names, a scheduler that is never idle would keep them for ever. To
// look for those that are gone was rejected: it would be a walk over all.
func (l library) to(needs clusterview.Needs, nodes int) answers {
	if needs == "" {
		return make(answers)
	}
	if known, ok := l.byNeeds.Get(needs); ok && len(known.(answers)) <= 2*nodes {
		return known.(answers)
	}
	fresh := make(answers)
	l.byNeeds.Add(needs, fresh)
	return fresh
}
