// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// mostQuestions bounds for how many limits and revisions the pods of one workload are counted. All of its pods may count for each of them, and each may
// say something else of its limits, so that one namespace took the memory of all. Of a workload with more of them some are counted for each binding.
const mostQuestions = 64

// counts has the pods of revisions by domain: those that are known to be on a node, and those that were admitted to one. A revision is counted
// when it is asked about for the first time, and kept up to date from then on. To count it for each binding was rejected: the more pods a
// workload had, the longer each of its bindings took.
type counts struct {
	// nodes are those where a pod is, or to which it was admitted.
	nodes func(types.UID) []string

	mu sync.Mutex // guards what follows, and is taken after the locks of nodes and workloads
	of map[clusterview.Workload]map[question]*domains
	// pods are those of the workloads that are counted, and are somewhere.
	pods map[types.UID]clusterview.Identity
}

// question tells revisions with limits from each other.
type question struct {
	id     clusterview.Identity
	limits string
}

// domains are the pods of one revision.
type domains struct {
	revision
	counts *limit.Counts
	// at has the domains where each pod counts: those of each of its nodes, as they were then.
	at map[types.UID][][]placement.Value
}

func newCounts(nodes func(types.UID) []string) *counts {
	return &counts{nodes: nodes, of: make(map[clusterview.Workload]map[question]*domains), pods: make(map[types.UID]clusterview.Identity)}
}

// full reports whether a domain of a node has as many pods of the revision, but for this one, as it may. A node that is not known, or in no
// domain, is the scheduler's concern.
func (c *counts) full(ctx context.Context, uid types.UID, r revision, node string) bool {
	values, known := r.values(ctx, node)
	if !known {
		return false
	}
	d := c.domains(ctx, r)
	if d == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	own := d.at[uid] // it may have been admitted to another node before
	d.put(uid, nil)
	defer d.put(uid, own)
	return d.counts.Check(values) == limit.Full
}

// domains returns the pods of a revision, nil if they cannot be read.
func (c *counts) domains(ctx context.Context, r revision) *domains {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := question{r.id, limit.Format(r.limits)}
	of := c.of[r.id.Workload]
	switch {
	case of[asked] != nil:
		return of[asked]
	case len(of) >= mostQuestions:
		// It is not kept, and keeps nobody waiting: other workloads are not to pay for this one.
		c.mu.Unlock()
		defer c.mu.Lock()
		return c.read(ctx, r, func(types.UID, clusterview.Identity, []string) {})
	case of == nil:
		of = make(map[question]*domains)
		c.of[r.id.Workload] = of
	}
	if d := c.read(ctx, r, c.note); d != nil {
		of[asked] = d
	}
	return of[asked]
}

// read counts the pods of a revision, nil if they cannot be read, and tells of those of its workload that count.
func (c *counts) read(ctx context.Context, r revision, note func(types.UID, clusterview.Identity, []string)) *domains {
	var list corev1.PodList
	if err := r.cache.List(ctx, &list, client.InNamespace(r.id.Workload.Namespace), client.MatchingFields{byWorkload: r.id.Workload.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	d := &domains{r, limit.Count(r.limits, func(func([]placement.Value, int64) bool) {}), make(map[types.UID][][]placement.Value)}
	for i := range list.Items {
		uid := list.Items[i].UID
		// Where one counts no more, all that is counted is told when the ledger is.
		if is, nodes := c.where(&list.Items[i]); len(nodes) > 0 {
			note(uid, is, nodes)
			d.count(ctx, uid, is, nodes)
		}
	}
	return d
}

// set says that a pod has changed, or where it is, or to which nodes it was admitted.
func (c *counts) set(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of) == 0 {
		return // nothing has limits, and pods need not be looked at
	}
	is, nodes := c.where(pod)
	c.place(pod.UID, is, nodes)
}

// moved says that pods of which no more is known than their UIDs have gone, or are not to come to a node any more, or that their node has come or gone.
func (c *counts) moved(uids ...types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, uid := range uids {
		if is, counted := c.pods[uid]; counted {
			c.place(uid, is, c.nodes(uid))
		}
	}
}

// relabelled says that a node has changed. What is counted by a label of which it has another value now is counted anew: others may be written by
// the minute.
func (c *counts) relabelled(was, is *corev1.Node) {
	if maps.Equal(was.Labels, is.Labels) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for workload := range c.of {
		c.drop(workload, func(d *domains) bool {
			return !slices.Equal(clusterview.AppendDomains(nil, was, d.limits), clusterview.AppendDomains(nil, is, d.limits))
		})
	}
}

// where is what a pod is, and on which nodes it counts.
func (c *counts) where(pod *corev1.Pod) (is clusterview.Identity, nodes []string) {
	if podcount.Counts(pod) {
		nodes = c.nodes(pod.UID)
	}
	return identifier.Identify(pod), nodes
}

// place has a pod count on some nodes, and nowhere else.
func (c *counts) place(uid types.UID, is clusterview.Identity, nodes []string) {
	c.note(uid, is, nodes)
	for _, d := range c.of[is.Workload] {
		d.count(context.Background(), uid, is, nodes)
	}
	c.prune(is.Workload)
}

// note has a pod be one of its workload, and of no other.
func (c *counts) note(uid types.UID, is clusterview.Identity, nodes []string) {
	if was := c.pods[uid].Workload; was != is.Workload {
		for _, d := range c.of[was] {
			d.put(uid, nil)
		}
		c.prune(was)
	}
	delete(c.pods, uid)
	if len(nodes) > 0 && c.of[is.Workload] != nil {
		c.pods[uid] = is
	}
}

// tidy forgets the revisions of a workload that have no pods, as after one was tried that did not come.
func (c *counts) tidy(workload clusterview.Workload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune(workload)
}

// prune forgets the revisions of a workload that have no pods: of most, there will be none any more.
func (c *counts) prune(workload clusterview.Workload) {
	c.drop(workload, func(d *domains) bool { return len(d.at) == 0 })
}

// drop forgets some of what is counted of a workload.
func (c *counts) drop(workload clusterview.Workload, those func(*domains) bool) {
	maps.DeleteFunc(c.of[workload], func(_ question, d *domains) bool { return those(d) })
	if len(c.of[workload]) == 0 {
		delete(c.of, workload)
	}
}

// count has a pod count in the domains of some nodes, if it is of the revision.
func (d *domains) count(ctx context.Context, uid types.UID, is clusterview.Identity, nodes []string) {
	var at [][]placement.Value
	if d.alike(is) {
		for _, name := range nodes {
			if values, known := d.values(ctx, name); known {
				at = append(at, values)
			}
		}
	}
	d.put(uid, at)
}

// put has a pod count in some domains, in place of those where it did.
func (d *domains) put(uid types.UID, at [][]placement.Value) {
	for _, values := range d.at[uid] {
		d.counts.Add(values, -1)
	}
	for _, values := range at {
		d.counts.Add(values, 1)
	}
	if len(at) == 0 {
		delete(d.at, uid)
		return
	}
	d.at[uid] = at
}
