// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// selection is a selector under which pods are counted as one workload.
type selection struct {
	*clusterview.Selector
	workload clusterview.Workload
	// pods are those that it selects, by their own workload.
	pods map[clusterview.Workload]int
	used uint64 // of selections.clock
}

// selections are those of an index, by namespace.
type selections struct {
	of    map[string][]*selection
	count int
	clock uint64 // counts the uses
}

// under is a pod under a selector.
type under struct {
	in *selection
	of *revision
}

// maxSelections bounds the selectors under which pods are counted: each is asked about every pod of its namespace
// that comes. Few select more than one workload. Beyond it the least recently used one goes of the namespace that has
// the most, so that one tenant with many does not take those of others.
const maxSelections = 256

// Under returns what a pod counts as under the selector of its constraints. It is the pod's own identity
// where the selector selects pods of its workload alone, as most do. Where it selects pods of others too, all that
// it selects are one workload, in which only pods of the same owner can be of an older revision.
func (c *Index) Under(id clusterview.Identity, s *clusterview.Selector) clusterview.Identity {
	if s == nil || s.Empty() || c.labels.onlyOf(id.Workload, s) {
		return id
	}
	is := c.selection(s)
	if own := is.pods[id.Workload]; own > 0 && len(is.pods) == 1 || len(is.pods) == 0 {
		return id
	}
	return selected(id, is.workload)
}

// selected is an identity among all pods that a selector selects.
func selected(id clusterview.Identity, workload clusterview.Workload) clusterview.Identity {
	of := clusterview.Identity{Workload: workload}
	if id.Revision != "" {
		of.Owner, of.Revision = id.Workload.Kind+"/"+id.Workload.Name+"/"+id.Owner, id.Revision
	}
	return of
}

// Merged returns the identity that all owners of a workload share who have no older revision in it: they see the
// same counts. Where the owner has one, it is the identity itself.
func (c *Index) Merged(id clusterview.Identity) clusterview.Identity {
	if id.Owner == "" {
		return id
	}
	// A pod of no owner and of some revision counts as older to all.
	if w := c.workloads.get(id.Workload); w.hasOther(id.Owner, id.Revision) || w.hasOther("", "") {
		return id
	}
	return clusterview.Identity{Workload: id.Workload}
}

// selection returns that of a selector. A new one counts all pods that there are in its namespace.
func (c *Index) selection(s *clusterview.Selector) *selection {
	workload, all := s.Workload(), &c.selections
	all.clock++
	if i := slices.IndexFunc(all.of[s.Namespace], func(is *selection) bool { return is.workload == workload }); i >= 0 {
		is := all.of[s.Namespace][i]
		is.used = all.clock
		return is
	}
	if all.count == maxSelections {
		c.evictSelection()
	}
	is := &selection{s, workload, make(map[clusterview.Workload]int), all.clock}
	all.of[s.Namespace] = append(all.of[s.Namespace], is)
	all.count++
	for n := range c.nodesWith(slices.Collect(maps.Values(c.workloads[s.Namespace]))...) {
		for j := range n.pods {
			c.countUnder(is, n, &n.pods[j])
		}
	}
	return is
}

// nodesWith returns the nodes on which some workloads have pods.
func (*Index) nodesWith(workloads ...*workload) map[*count]bool {
	nodes := make(map[*count]bool)
	for _, w := range workloads {
		for i := range w.onNodes {
			nodes[w.onNodes[i].node] = true
		}
	}
	return nodes
}

// countUnder counts a pod under a selector that selects it.
func (c *Index) countUnder(is *selection, n *count, p *identified) {
	if p.of == nil || p.of.workload.key.Namespace != is.Namespace || !is.Matches(labels.Set(p.labels)) {
		return
	}
	c.serial++
	id := selected(clusterview.Identity{Workload: p.of.workload.key, Owner: p.of.owner, Revision: p.of.revision}, is.workload)
	p.under = append(p.under, under{is, c.workloads.add(n, id, c.serial)})
	is.pods[p.of.workload.key]++
}

// uncountUnder takes a pod back under some of the selectors that it counts under.
func (c *Index) uncountUnder(n *count, p *identified, those func(*selection) bool) {
	p.under = slices.DeleteFunc(p.under, func(u under) bool {
		if !those(u.in) {
			return false
		}
		c.serial++
		c.workloads.remove(n, u.of, c.serial)
		if u.in.pods[p.of.workload.key]--; u.in.pods[p.of.workload.key] == 0 {
			delete(u.in.pods, p.of.workload.key)
		}
		return true
	})
}

func anySelection(*selection) bool { return true }

// evictSelection stops counting under one selector.
func (c *Index) evictSelection() {
	all := &c.selections
	var is *selection
	for _, of := range all.of {
		oldest := slices.MinFunc(of, func(a, b *selection) int { return cmp.Compare(a.used, b.used) })
		if is == nil || cmp.Or(cmp.Compare(len(of), len(all.of[is.Namespace])), cmp.Compare(is.used, oldest.used)) > 0 {
			is = oldest
		}
	}
	most := is.Namespace
	if w := c.workloads.get(is.workload); w != nil {
		for n := range c.nodesWith(w) {
			for j := range n.pods {
				c.uncountUnder(n, &n.pods[j], func(of *selection) bool { return of == is })
			}
		}
	}
	all.count--
	if all.of[most] = slices.DeleteFunc(all.of[most], func(of *selection) bool { return of == is }); len(all.of[most]) == 0 {
		delete(all.of, most)
	}
}

// podLabels counts the pods that have a label, by workload, in the order in which the workloads have come.
type podLabels map[podLabel][]holder

type podLabel struct{ namespace, key, value string }

type holder struct {
	of   *workload
	pods int
}

// notCounted are labels of which each pod of a workload has its own value: selectors do not name them, and to know
// who has them would take more room than all others together.
var notCounted = map[string]bool{
	"statefulset.kubernetes.io/pod-name":       true,
	"apps.kubernetes.io/pod-index":             true,
	"batch.kubernetes.io/job-completion-index": true,
}

// add counts a pod of a workload, or takes it back.
func (l podLabels) add(of *workload, labels map[string]string, by int) {
	for key, value := range labels {
		if notCounted[key] {
			continue
		}
		label := podLabel{of.key.Namespace, key, value}
		holders := l[label]
		i, known := find(holders, of)
		if !known {
			holders = slices.Insert(holders, i, holder{of: of})
		}
		if holders[i].pods += by; holders[i].pods == 0 {
			holders = slices.Delete(holders, i, i+1)
		}
		if len(holders) == 0 {
			delete(l, label)
		} else {
			l[label] = holders
		}
	}
}

func find(holders []holder, of *workload) (int, bool) {
	return slices.BinarySearchFunc(holders, of.serial, func(h holder, serial uint64) int { return cmp.Compare(h.of.serial, serial) })
}

// onlyOf reports that no other workload has all labels that a selector asks for. Of one that has, it may still be that
// no pod has all of them.
func (l podLabels) onlyOf(w clusterview.Workload, s *clusterview.Selector) bool {
	var fewest []holder
	counted := false
	for key, value := range s.Labels {
		if holders := l[podLabel{s.Namespace, key, value}]; !notCounted[key] && (!counted || len(holders) < len(fewest)) {
			fewest, counted = holders, true
		}
	}
	return counted && !slices.ContainsFunc(fewest, func(h holder) bool { return h.of.key != w && l.hasAll(h.of, s) })
}

func (l podLabels) hasAll(of *workload, s *clusterview.Selector) bool {
	for key, value := range s.Labels {
		if _, has := find(l[podLabel{s.Namespace, key, value}], of); !has && !notCounted[key] {
			return false
		}
	}
	return true
}
