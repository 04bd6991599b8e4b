// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// affinities has the terms by which pods on nodes prefer other pods near them, or far from them. kube-scheduler scores nodes by
// them for a pod that has no preference itself. Many pods have the same term: each is kept once.
type affinities struct {
	// in has the terms about pods of a namespace, anywhere those about namespaces with some labels.
	in       map[string]terms
	anywhere terms
	// of has the pods on a node that have any, with their terms.
	of map[*count][]preferring
	// scoring says which are scored.
	scoring clusterview.Scoring
}

// preferring is a pod with the terms that are scored for others.
type preferring struct {
	pod   fwk.PodInfo
	terms []affinity
}

// terms are terms by their keys.
type terms map[string]*used

type used struct {
	affinity
	times int
}

// affinity is a term with a key that is the same for terms that mean the same.
type affinity struct {
	key  string
	term fwk.AffinityTerm
}

func newAffinities() affinities {
	return affinities{in: make(map[string]terms), anywhere: make(terms), of: make(map[*count][]preferring)}
}

// set notes the terms of the pods on a node.
func (a *affinities) set(n *count, info fwk.NodeInfo) {
	before := a.of[n]
	var now []preferring
	if info != nil {
		for _, p := range info.GetPodsWithAffinity() {
			// A pod that has changed is another object. To write terms down takes longer than to find them.
			if at := slices.IndexFunc(before, func(b preferring) bool { return b.pod == p }); at >= 0 {
				now = append(now, before[at])
				before = slices.Delete(before, at, at+1)
				continue
			}
			if terms := a.preferred(p); len(terms) > 0 {
				now = append(now, preferring{p, terms})
				a.useAll(terms, +1)
			}
		}
	}
	for _, b := range before {
		a.useAll(b.terms, -1)
	}
	if len(now) == 0 {
		delete(a.of, n)
		return
	}
	a.of[n] = now
}

// preferred are the terms of a pod that InterPodAffinity scores for other pods. A required affinity is among them: where such
// pods are, more of those that they require are welcome.
func (a *affinities) preferred(p fwk.PodInfo) (all []affinity) {
	if a.scoring.IgnoresTerms {
		return nil
	}
	for _, weighted := range [][]fwk.WeightedAffinityTerm{p.GetPreferredAffinityTerms(), p.GetPreferredAntiAffinityTerms()} {
		for i := range weighted {
			all = append(all, keyed(weighted[i].AffinityTerm))
		}
	}
	if a.scoring.IgnoresRequired {
		return all
	}
	for _, t := range p.GetRequiredAffinityTerms() {
		all = append(all, keyed(t))
	}
	return all
}

// keyed gives a term its key. The topology key is no part of it: only who is meant is asked.
func keyed(t fwk.AffinityTerm) affinity {
	return affinity{strings.Join([]string{strings.Join(sets.List(t.Namespaces), ","), written(t.NamespaceSelector), written(t.Selector)}, "\x00"), t}
}

// written tells the selector of nothing from that of everything, which are written alike.
func written(s labels.Selector) string {
	if _, selectable := s.Requirements(); !selectable {
		return "nothing"
	}
	return "(" + s.String() + ")"
}

func (a *affinities) useAll(terms []affinity, by int) {
	for _, t := range terms {
		a.use(t, by)
	}
}

func (a *affinities) use(t affinity, by int) {
	if _, selectable := t.term.NamespaceSelector.Requirements(); selectable {
		a.anywhere.use(t, by)
	}
	for namespace := range t.term.Namespaces {
		if a.in[namespace] == nil {
			a.in[namespace] = make(terms)
		}
		if a.in[namespace].use(t, by); len(a.in[namespace]) == 0 {
			delete(a.in, namespace)
		}
	}
}

func (t terms) use(a affinity, by int) {
	is := t[a.key]
	if is == nil {
		is = &used{affinity: a}
		t[a.key] = is
	}
	if is.times += by; is.times == 0 {
		delete(t, a.key)
	}
}

// SetScoring has the index go by the scoring of a profile. It is for before there are any pods.
func (c *Index) SetScoring(by clusterview.Scoring) { c.affinities.scoring = by }

// Preferred reports whether a pod on a node prefers pods like this one near it, or far from it, by InterPodAffinity. The labels of the
// pod's namespace are asked for if it matters.
func (c *Index) Preferred(pod *corev1.Pod, namespace func() labels.Set) bool {
	own := labels.Set(pod.Labels)
	for _, t := range c.affinities.in[pod.Namespace] {
		if t.term.Selector.Matches(own) {
			return true
		}
	}
	if len(c.affinities.anywhere) == 0 {
		return false
	}
	its := namespace()
	for _, t := range c.affinities.anywhere {
		if t.term.NamespaceSelector.Matches(its) && t.term.Selector.Matches(own) {
			return true
		}
	}
	return false
}
