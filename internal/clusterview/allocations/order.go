// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"hash/maphash"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/espalier-scheduler/espalier/pkg/placement/allocation"
	"github.com/espalier-scheduler/espalier/pkg/placement/identity"
)

// Cluster is what is to be put in order.
type Cluster struct {
	Nodes []*corev1.Node
	// Pods are all of the cluster, or at least those of the schedulers.
	Pods []*corev1.Pod
	// Schedules reports whether a scheduler is one of those whose pods are of allocations.
	Schedules func(schedulerName string) bool
	// Placed reports whether a pod has a node, or is about to. Without it, those have one that say so.
	Placed func(*corev1.Pod) bool
	// Last is an earlier order, if there is one. What pods request that are the same objects there is not computed again.
	Last *Order
	// Evicted reports whether a pod leaves because this process evicted it. Without it, none does.
	Evicted func(types.UID) bool
}

// Order is the pods of each partition in their order.
type Order struct {
	*Claims
	// Queues are those of the partitions that are accepted, in the order of their age.
	Queues []*Queue
	// Held are the pods that are in no order, and why: those that must wait whatever their position, and all of an allocation that is not
	// accepted.
	Held map[types.UID]error
	// Rivals has for each allocation those that claim some of the same pods, and of how many.
	Rivals map[*Allocation]map[*Allocation]int

	places map[types.UID]Place
}

// Queue is the order of one partition.
type Queue struct {
	Partition *Partition
	// Resources are those that its allocations reserve, by name. Where they reserve none they are CPU and memory.
	Resources []corev1.ResourceName
	// Absent are resources that its allocations reserve and no node of it knows. They are none of Resources.
	Absent []corev1.ResourceName
	// Size is what its nodes have of each, and Reserved what its allocations reserve.
	Size, Reserved allocation.Vector
	Nodes          int
	Entries        []Entry
	// Stamp is another one where what is wanted, reserved or there is different, or where pods that had nodes have gone that this process did not
	// evict. Which pods have their nodes is no part of it.
	Stamp uint64
	// lost is how many have gone so, since the first order.
	lost int
	// Groups are the identity groups of its allocations.
	Groups map[GroupKey]*Group
}

// Entry is a pod at its position.
type Entry struct {
	allocation.Entry
	Object     *corev1.Pod
	Allocation *Allocation
	// Surplus says that it holds an identity that its group does not have any more, or that another one holds.
	Surplus bool
}

// MustNotRun reports that a pod is evicted if it runs.
func (e *Entry) MustNotRun() bool { return e.Exceeds() || e.Surplus }

// List is an amount of each of the queue's resources, as quantities.
func (q *Queue) List(of allocation.Vector) corev1.ResourceList {
	list := make(corev1.ResourceList, len(q.Resources))
	for i, name := range q.Resources {
		list[name] = quantityOf(name, of.At(i))
	}
	return list
}

// Place returns where a pod is. It is false for a pod that is in no order, or was not there.
func (o *Order) Place(pod *corev1.Pod) (Place, bool) {
	place, ok := o.places[pod.UID]
	return place, ok
}

// Has reports whether a pod is in the order.
func (o *Order) Has(uid types.UID) bool {
	_, has := o.places[uid]
	return has
}

// GroupKey tells identity groups apart, by the names of their allocation and their own.
type GroupKey struct{ Allocation, Name string }

// Group is who holds the identities of a group.
type Group struct {
	Size int
	Held identity.Set
	// binding is how many pods are about to have a node, and an identity that is not seen yet.
	binding int
	// waits is the group of those that wait: as many as there are identities left for may be tried, as others would take capacity in vain.
	waits allocation.Group
	// seen are the identities that pods up to one in the order hold.
	seen identity.Set
}

// Arrange puts the pods of all partitions in order.
func (c *Claims) Arrange(cluster Cluster) *Order {
	o := &Order{
		Claims: c, Held: make(map[types.UID]error), Rivals: make(map[*Allocation]map[*Allocation]int),
	}
	queues := make(map[*Partition]*queueBuilder)
	for _, p := range c.Partitions {
		if p.err == nil {
			queues[p] = c.queueOf(p, cluster.Nodes)
		}
	}
	for _, pod := range cluster.Pods {
		if counts(pod) && cluster.Schedules(pod.Spec.SchedulerName) {
			o.take(pod, queues, &cluster)
		}
	}
	n := 0
	for _, p := range c.Partitions {
		if b, ok := queues[p]; ok {
			q := b.build()
			o.Queues = append(o.Queues, q)
			n += len(q.Entries)
		}
	}
	o.places = make(map[types.UID]Place, n)
	for _, q := range o.Queues {
		for i := range q.Entries {
			o.places[q.Entries[i].Object.UID] = Place{q, i}
		}
	}
	for _, q := range o.Queues {
		q.lost = o.lostOf(q.Partition.Name, &cluster)
		q.stamp(" lost", nil, q.lost) // no Allocation has such a name
	}
	return o
}

// lostOf is how many pods of a partition that had nodes have gone, by the last order and this one, that this process did not evict.
func (o *Order) lostOf(partition string, cluster *Cluster) (lost int) {
	if cluster.Last == nil {
		return 0
	}
	i := slices.IndexFunc(cluster.Last.Queues, func(q *Queue) bool { return q.Partition.Name == partition })
	if i < 0 {
		return 0
	}
	last := cluster.Last.Queues[i]
	lost = last.lost
	for i := range last.Entries {
		if uid := last.Entries[i].Object.UID; last.Entries[i].Pod.Placed && !o.Has(uid) && (cluster.Evicted == nil || !cluster.Evicted(uid)) {
			lost++
		}
	}
	return lost
}

// counts reports whether a pod is there to stay, or still holds something.
func counts(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// take gives a pod to the queue of its partition, if it is of an allocation.
func (o *Order) take(pod *corev1.Pod, queues map[*Partition]*queueBuilder, cluster *Cluster) {
	claim, known := o.Of(pod)
	if !known || claim.Allocation == nil {
		return
	}
	for _, rival := range claim.Rivals {
		o.noteRivals(claim.Allocation, rival)
		o.noteRivals(rival, claim.Allocation)
	}
	p, _, notAccepted := o.PartitionOf(claim.Allocation)
	if err := o.Check(pod, claim.Allocation); err != nil && (notAccepted != nil || pod.Spec.NodeName == "") {
		o.Held[pod.UID] = err
		return
	}
	// One that runs keeps its place whatever it says of itself: it would make way for nobody if it were in no order.
	b := queues[p]
	has := pod.Spec.NodeName != "" || cluster.Placed != nil && cluster.Placed(pod)
	b.hold(claim.Allocation, pod, has)
	if pod.DeletionTimestamp != nil {
		return // it holds its identity until it is gone, and is no longer in line
	}
	priority, _ := priorityOf(pod, claim.Priority)
	b.add(claim.Allocation, pod, priority, has, cluster.Last)
}

func (o *Order) noteRivals(a, b *Allocation) {
	if o.Rivals[a] == nil {
		o.Rivals[a] = make(map[*Allocation]int)
	}
	o.Rivals[a][b]++
}

// queueBuilder gathers what a queue is made of.
type queueBuilder struct {
	Queue
	root *allocation.Allocation
	pure map[*Allocation]*allocation.Allocation
	of   map[*allocation.Allocation]*Allocation
	// objects are those of the pods, by their Index.
	objects []*corev1.Pod
	// requests are those of the last pod. The map is used for the next one.
	requests corev1.ResourceList
}

// queueOf begins the queue of a partition, with its nodes and allocations.
func (t *Tree) queueOf(p *Partition, nodes []*corev1.Node) *queueBuilder {
	b := &queueBuilder{
		Queue: Queue{Partition: p, Groups: make(map[GroupKey]*Group)}, root: &allocation.Allocation{},
		pure: make(map[*Allocation]*allocation.Allocation), of: make(map[*allocation.Allocation]*Allocation),
	}
	var own []*corev1.Node
	for _, node := range nodes {
		if t.PartitionOfNode(node) == p {
			own = append(own, node)
		}
	}
	b.Resources, b.Absent = t.resourcesOf(p, own)
	for _, a := range t.Allocations {
		if t.isOf(a, p) {
			its := &allocation.Allocation{Name: a.Name, Rank: a.rank, Adjustment: a.adjustment, MaxUtilization: a.maxUtilization}
			b.pure[a], b.of[its] = its, a
		}
	}
	b.Reserved = make(allocation.Vector, len(b.Resources))
	for _, a := range t.Allocations { // in order: that of a map would be another one each time
		its, ok := b.pure[a]
		if !ok {
			continue
		}
		reserved := func(name corev1.ResourceName) int64 { return a.Reserved[name] }
		its.Reserved, its.Absent = vectorOf(b.Resources, reserved), vectorOf(b.Absent, reserved)
		b.stamp("of "+a.Name, its.Reserved, int(a.Generation))
		b.Reserved = b.Reserved.Plus(its.Reserved)
		parent := b.root
		if a.Parent != "" {
			parent = b.pure[t.allocations[a.Parent]]
		}
		parent.Children = append(parent.Children, its)
		for name, size := range a.groups {
			b.Groups[GroupKey{a.Name, name}] = &Group{Size: size, Held: make(identity.Set), seen: make(identity.Set)}
		}
	}
	for _, node := range own {
		has := vectorOf(b.Resources, func(name corev1.ResourceName) int64 { return max(0, amountOf(name, node.Status.Allocatable[name])) })
		b.Nodes++
		b.Size = b.Size.Plus(has)
		b.stamp(node.Name, has, 0)
	}
	return b
}

// vectorOf has an amount for each of some resources.
func vectorOf(resources []corev1.ResourceName, amount func(corev1.ResourceName) int64) allocation.Vector {
	if len(resources) == 0 {
		return nil
	}
	v := make(allocation.Vector, len(resources))
	for i, name := range resources {
		v[i] = amount(name)
	}
	return v
}

// groupOf is the identity group of a pod, nil for none.
func (b *queueBuilder) groupOf(a *Allocation, pod *corev1.Pod) *Group {
	if len(a.groups) == 0 {
		return nil // as most have none: their pods are not looked at
	}
	name, _, _ := a.Group(pod)
	return b.Groups[GroupKey{a.Name, name}]
}

// hold notes the identity that a pod has.
func (b *queueBuilder) hold(a *Allocation, pod *corev1.Pod, placed bool) {
	g := b.groupOf(a, pod)
	if g == nil {
		return
	}
	if id := IdentityOf(pod); id >= 0 {
		g.Held[id] = true
	} else if placed && pod.Spec.NodeName == "" {
		g.binding++
	}
}

// add puts a pod in line.
func (b *queueBuilder) add(a *Allocation, pod *corev1.Pod, priority int, placed bool, last *Order) {
	its := b.pure[a]
	p, known := last.podOf(pod, &b.Queue)
	if !known {
		p = allocation.Pod{Key: pod.Namespace + "/" + pod.Name}
		p.Demand, p.Absent = b.demand(pod)
	}
	b.stamp(a.Name, p.Demand, priority)
	p.Index, p.Priority, p.Placed, p.Arrival, p.Group = len(b.objects), priority, placed, arrival(pod, placed), nil
	if g := b.groupOf(a, pod); g != nil {
		p.Group = &g.waits
	}
	its.Pods = append(its.Pods, p)
	b.objects = append(b.objects, pod)
}

// podOf is a pod that is the same object in an order, which may be nil, with the same resources as in a queue.
func (o *Order) podOf(pod *corev1.Pod, in *Queue) (is allocation.Pod, known bool) {
	if o == nil {
		return is, false
	}
	place, ok := o.Place(pod)
	if !ok || place.Entry().Object != pod || !slices.Equal(place.Resources, in.Resources) || !slices.Equal(place.Absent, in.Absent) {
		return is, false
	}
	return *place.Entry().Pod, true
}

// arrival is since when a pod runs, or waits if it does not. Of pods that run the one that was placed last is the last: nobody who runs is
// moved back by another one that is placed.
func arrival(pod *corev1.Pod, placed bool) int64 {
	if !placed {
		return pod.CreationTimestamp.Unix()
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Unix()
		}
	}
	return math.MaxInt64 // it is being bound
}

// stamps is the seed of the hashes that stamps are made of.
var stamps = maphash.MakeSeed()

// stamp adds something to the stamp, whose sum does not depend on the order in which things come.
func (q *Queue) stamp(name string, amounts allocation.Vector, number int) {
	var h maphash.Hash
	h.SetSeed(stamps)
	_, _ = h.WriteString(name)
	maphash.WriteComparable(&h, number)
	for _, amount := range amounts {
		maphash.WriteComparable(&h, amount)
	}
	q.Stamp += h.Sum64()
}

// demand is what a pod requests, also of resources that no node knows.
func (b *queueBuilder) demand(pod *corev1.Pod) (demand, absent allocation.Vector) {
	b.requests = resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{Reuse: b.requests})
	amount := func(name corev1.ResourceName) int64 {
		if name == corev1.ResourcePods {
			return 1
		}
		return max(0, amountOf(name, b.requests[name]))
	}
	return vectorOf(b.Resources, amount), vectorOf(b.Absent, amount)
}

// build puts all in order.
func (b *queueBuilder) build() *Queue {
	q := &b.Queue
	for _, g := range q.Groups {
		g.waits.Free = identity.Free(g.Size, g.Held) - g.binding
	}
	ordered := allocation.Order(b.root, b.Size, allocation.Options{RankPerLevel: q.Partition.byLevel})
	q.Entries = make([]Entry, len(ordered))
	for i, e := range ordered {
		q.Entries[i] = Entry{Entry: e, Object: b.objects[e.Pod.Index], Allocation: b.of[e.Of]}
		b.identify(&q.Entries[i])
	}
	return q
}

// identify says of a pod of an identity group whether it holds a number that it must not.
func (b *queueBuilder) identify(e *Entry) {
	if e.Pod.Group == nil {
		return
	}
	id := IdentityOf(e.Object)
	if id < 0 {
		return // it waits, or has its node from before there was a group
	}
	g := b.groupOf(e.Allocation, e.Object)
	e.Surplus = !identity.Valid(g.Size, id) || g.seen[id]
	g.seen[id] = true
}
