// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

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
	c := &counts{nodes: nodes}
	c.forget()
	return c
}

// forget has everything be counted anew, as after nodes have come to be in other domains.
func (c *counts) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of, c.pods = make(map[clusterview.Workload]map[question]*domains), make(map[types.UID]clusterview.Identity)
}

// full reports whether a domain of a node has as many pods of the revision, but for this one, as it may. A node that is not known, or in no
// domain, is the scheduler's concern.
func (c *counts) full(ctx context.Context, uid types.UID, r revision, node string) bool {
	values, known := r.values(ctx, node)
	if !known {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.domains(ctx, r)
	if d == nil {
		return false
	}
	own := d.at[uid] // it may have been admitted to another node before
	d.put(uid, nil)
	defer d.put(uid, own)
	return d.counts.Check(values) == limit.Full
}

// domains returns the pods of a revision, nil if they cannot be read.
func (c *counts) domains(ctx context.Context, r revision) *domains {
	asked := question{r.id, limit.Format(r.limits)}
	if d := c.of[r.id.Workload][asked]; d != nil {
		return d
	}
	var list corev1.PodList
	if err := r.cache.List(ctx, &list, client.InNamespace(r.id.Workload.Namespace), client.MatchingFields{byWorkload: r.id.Workload.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	d := &domains{r, limit.Count(r.limits, func(func([]placement.Value, int64) bool) {}), make(map[types.UID][][]placement.Value)}
	if c.of[r.id.Workload] == nil {
		c.of[r.id.Workload] = make(map[question]*domains)
	}
	c.of[r.id.Workload][asked] = d
	for i := range list.Items {
		c.count(ctx, &list.Items[i])
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
	is := c.count(context.Background(), pod)
	c.prune(is.Workload)
}

// moved says that a pod of which no more is known than its UID has gone, or is not to come to a node any more.
func (c *counts) moved(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is, counted := c.pods[uid]; counted {
		c.place(context.Background(), uid, is, c.nodes(uid))
		c.prune(is.Workload)
	}
}

// count has a pod count where it does now, and nowhere else.
func (c *counts) count(ctx context.Context, pod *corev1.Pod) clusterview.Identity {
	is := identifier.Identify(pod)
	var nodes []string
	if podcount.Counts(pod) {
		nodes = c.nodes(pod.UID)
	}
	c.place(ctx, pod.UID, is, nodes)
	return is
}

// place has a pod count on some nodes, and nowhere else.
func (c *counts) place(ctx context.Context, uid types.UID, is clusterview.Identity, nodes []string) {
	if was := c.pods[uid].Workload; was != is.Workload {
		for _, d := range c.of[was] {
			d.put(uid, nil)
		}
	}
	delete(c.pods, uid)
	if len(nodes) > 0 && c.of[is.Workload] != nil {
		c.pods[uid] = is
	}
	for _, d := range c.of[is.Workload] {
		var at [][]placement.Value
		for _, name := range nodes {
			if values, known := d.values(ctx, name); known && d.alike(is) {
				at = append(at, values)
			}
		}
		d.put(uid, at)
	}
}

// prune forgets the revisions of a workload that have no pods: of most, there will be none any more.
func (c *counts) prune(workload clusterview.Workload) {
	maps.DeleteFunc(c.of[workload], func(_ question, d *domains) bool { return len(d.at) == 0 })
	if len(c.of[workload]) == 0 {
		delete(c.of, workload)
	}
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
