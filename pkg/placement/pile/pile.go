// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package pile

import (
	"container/heap"
	"slices"
)

// Pile is the pods of one branch among its siblings, or of a node among those of its leaf. A last resort has
// share 0, by which every pod of it is higher than any other.
type Pile struct {
	Pods, Share int64
	// Takes says that another pod may come.
	Takes bool
}

// last is the height of the highest pod, and next that of one pod more, both times the share: by Sainte-Laguë's rule, as
// where pods are placed, the n-th is at (2 * n - 1) / share.
func (p *Pile) last() int64 { return 2*p.Pods - 1 }
func (p *Pile) next() int64 { return 2*p.Pods + 1 }

// higher reports that one pod is better off on q than on p.
func (p *Pile) higher(q *Pile) bool { return p.last()*q.Share > q.next()*p.Share }

// Strewn counts the pods outside of the fullest pile that takes more.
func Strewn(piles []Pile) int64 {
	var sum, fullest int64
	for _, p := range piles {
		if p.Takes {
			sum += p.Pods
			fullest = max(fullest, p.Pods)
		}
	}
	return sum - fullest
}

// Uneven counts the pods that go from the highest pile to the lowest, one by one, until
// none is better off. No pile both gives and takes: what is lowest once is, with one pod
// more, no higher than what is highest then.
func Uneven(piles []Pile) int64 {
	high, low := extremes(piles)
	if low == nil || !high.higher(low) {
		return 0
	}
	from := pileHeap{piles: slices.Clone(piles), before: func(p, q *Pile) bool { return p.Higher(q) }}
	to := pileHeap{
		piles:  slices.DeleteFunc(piles, func(p Pile) bool { return !p.Takes }),
		before: func(p, q *Pile) bool { return p.next()*q.Share < q.next()*p.Share },
	}
	heap.Init(&from)
	heap.Init(&to)
	moves := int64(0)
	for from.piles[0].higher(&to.piles[0]) {
		from.piles[0].Pods--
		to.piles[0].Pods++
		heap.Fix(&from, 0)
		heap.Fix(&to, 0)
		moves++
	}
	return moves
}

// extremes returns the highest pile and the lowest of those that take pods, nil if there is none.
func extremes(piles []Pile) (high, low *Pile) {
	for i := range piles {
		p := &piles[i]
		if high == nil || p.Higher(high) {
			high = p
		}
		if p.Takes && (low == nil || p.next()*low.Share < low.next()*p.Share) {
			low = p
		}
	}
	return high, low
}

// pileHeap is piles, the first of them in front. Their number stays as it is.
type pileHeap struct {
	piles  []Pile
	before func(p, q *Pile) bool
}

func (h *pileHeap) Len() int           { return len(h.piles) }
func (h *pileHeap) Less(i, j int) bool { return h.before(&h.piles[i], &h.piles[j]) }
func (h *pileHeap) Swap(i, j int)      { h.piles[i], h.piles[j] = h.piles[j], h.piles[i] }

// Push and Pop are never called: no pile comes or goes while pods move.
func (h *pileHeap) Push(any) {}

// Pop is what heap.Interface asks for beside Push.
func (h *pileHeap) Pop() any { return nil }

// Higher reports that the highest pod of p is higher than that of q.
func (p *Pile) Higher(q *Pile) bool { return p.last()*q.Share > q.last()*p.Share }

// Highest is the pile that gives a pod first, and whether the pod is better off in another. Where piles are packed, it is one that
// is not the fullest.
func Highest(piles []Pile, packs bool) (at int, uneven bool) {
	fullest, lowest, at := -1, -1, -1
	for i := range piles {
		p := &piles[i]
		if p.Takes && (fullest < 0 || p.Pods > piles[fullest].Pods) {
			fullest = i
		}
		if p.Takes && (lowest < 0 || p.next()*piles[lowest].Share < piles[lowest].next()*p.Share) {
			lowest = i
		}
	}
	for i := range piles {
		p := &piles[i]
		switch {
		case p.Pods == 0:
		case packs && i != fullest && p.Takes && (at < 0 || p.Pods < piles[at].Pods):
			at = i
		case !packs && (at < 0 || p.Higher(&piles[at])):
			at = i
		}
	}
	if at < 0 || lowest < 0 {
		return 0, false
	}
	return at, packs || piles[at].higher(&piles[lowest])
}
