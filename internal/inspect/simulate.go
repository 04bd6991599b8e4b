// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// Simulation is what became of pods that were placed in a simulation.
type Simulation struct {
	// Pods are in the order in which they were placed.
	Pods []Placed `json:"pods"`
	// Trees are how the workloads of the manifest, and those of drained nodes, are spread afterwards.
	Trees []Tree `json:"trees"`
	// Ignored names the kinds of objects of the manifest that are no workloads.
	Ignored []string `json:"ignored,omitempty"`
	// Unread names what of the cluster could not be read.
	Unread []string `json:"unread,omitempty"`
	// Notes say what keeps this from being the whole answer.
	Notes []string `json:"notes,omitempty"`
}

// Placed is a pod in a simulation.
type Placed struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Why is Manifest, Drained, or Pending for one that was pending before.
	Why string `json:"why"`
	// Of is its workload, "" for a pod that was pending before.
	Of string `json:"of,omitempty"`
	// Node is "" for a pod that stays pending.
	Node string `json:"node,omitempty"`
	// Message says why it stays pending.
	Message string `json:"message,omitempty"`
}

// Why a pod is placed in a simulation.
const (
	WhyPending  = "Pending"
	WhyDrained  = "Drained"
	WhyManifest = "Manifest"
)

// Pending counts the pods that stay pending.
func (s *Simulation) Pending() (n int) {
	for i := range s.Pods {
		if s.Pods[i].Node == "" {
			n++
		}
	}
	return n
}

// withPolicies are some policies, with others in the place of those of the same name.
func withPolicies(there, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	kept := slices.DeleteFunc(slices.Clone(there), func(p *unstructured.Unstructured) bool {
		return slices.ContainsFunc(others, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == p.GetKind() && o.GetNamespace() == p.GetNamespace() && o.GetName() == p.GetName()
		})
	})
	return append(kept, others...)
}

// task is a pod to be placed.
type task struct {
	pod *corev1.Pod
	why string
	of  Ref
}

// Simulate places pods after the nodes of a snapshot have changed, under the policies of a manifest too: first those that are pending, as the
// scheduler would, then those of drained nodes, then those that the snapshot lacks of the manifest's workloads. Replicas below 0 are those of
// the manifest. Progress is told how many of all pods are placed.
func Simulate(ctx context.Context, s *snapshot.Snapshot, configuration []byte, change Change, manifest *Manifest, replicas int, progress func(done, all int)) (*Simulation, error) {
	changed, homeless, gone, err := change.apply(s)
	if err != nil {
		return nil, err
	}
	out := &Simulation{Pods: []Placed{}, Trees: []Tree{}, Unread: s.Unread, Ignored: manifest.Others}
	if gone > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d pods on the drained nodes have no controller that makes them anew: they are gone.", gone))
	}
	changed.Policies = withPolicies(s.Policies, manifest.Policies)
	changed.Objects = manifest.beside(s, changed.Objects)
	tasks := pending(changed)
	for _, p := range homeless {
		tasks = append(tasks, task{p, WhyDrained, workloadOfPod(s, p)})
		changed.Objects = append(changed.Objects, claimsOf(s, p, nil)...)
	}
	for i := range manifest.Workloads {
		w := &manifest.Workloads[i]
		lacks, err := w.lacks(s, replicas)
		if err != nil {
			return nil, err
		}
		if lacks.old > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("The template of %s is not that of the cluster: its pods are placed beside %d of the revision before, which a rollout would remove.", w.Ref, lacks.old))
		}
		changed.Objects = append(changed.Objects, lacks.objects...)
		for _, p := range lacks.pods {
			tasks = append(tasks, task{p, WhyManifest, w.Ref})
		}
	}
	c, err := Open(ctx, changed, configuration, Hints)
	if err != nil {
		return nil, err
	}
	out.Notes = append(out.Notes, c.Notes...)
	if err := c.place(ctx, tasks, out, progress); err != nil {
		return nil, err
	}
	return out, c.drawTrees(ctx, tasks, out)
}

// maxTrees bounds the trees of a simulation: a drained node may have had pods of many workloads.
const maxTrees = 10

// place places pods, in turn.
func (c *Cluster) place(ctx context.Context, tasks []task, out *Simulation, progress func(done, all int)) error {
	left := make(map[string]int) // pods that are not simulated, by the reason
	for i, t := range tasks {
		if err := ctx.Err(); err != nil {
			return err
		}
		progress(i, len(tasks))
		switch {
		case !slices.Contains(c.Profiles(), t.pod.Spec.SchedulerName):
			if t.why != WhyPending {
				left[fmt.Sprintf("of the scheduler %q", t.pod.Spec.SchedulerName)]++
			}
			continue
		case needsDevices(t.pod):
			left["with devices by a template of claims"]++
			continue
		}
		d, err := c.Place(ctx, t.pod)
		if err != nil {
			return err
		}
		placed := Placed{Namespace: t.pod.Namespace, Name: t.pod.Name, Why: t.why, Node: d.Node, Message: d.Message}
		if t.of != (Ref{}) {
			placed.Of = t.of.String()
		}
		out.Pods = append(out.Pods, placed)
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		out.Notes = append(out.Notes, fmt.Sprintf("%d pods %s are not simulated.", left[why], why))
	}
	return nil
}

// drawTrees adds the trees of the workloads whose pods were placed.
func (c *Cluster) drawTrees(ctx context.Context, tasks []task, out *Simulation) error {
	last := make(map[Ref]*corev1.Pod)
	var order []Ref
	for _, t := range tasks {
		if t.of == (Ref{}) || t.of.Kind == "Pod" || !slices.Contains(c.Profiles(), t.pod.Spec.SchedulerName) {
			continue
		}
		if last[t.of] == nil {
			order = append(order, t.of)
		}
		last[t.of] = t.pod
	}
	if len(order) > maxTrees {
		out.Notes = append(out.Notes, fmt.Sprintf("%d more workloads have pods among these.", len(order)-maxTrees))
		order = order[:maxTrees]
	}
	for _, of := range order {
		next := last[of].DeepCopy()
		next.Name, next.UID = of.Name+"-next", next.UID+"-next"
		next, _ = withoutMissingClaims(c.Snapshot, next) // which the one that was placed has
		t, err := c.treeOf(ctx, of, next)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			out.Notes = append(out.Notes, err.Error())
			continue
		}
		out.Trees = append(out.Trees, t)
	}
	return nil
}

// pending are the pods of a snapshot that wait for a node, in the order in which a scheduler takes them.
func pending(s *snapshot.Snapshot) []task {
	var all []task
	for _, p := range snapshot.Of[*corev1.Pod](s) {
		if p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !ended(p) && len(p.Spec.SchedulingGates) == 0 {
			all = append(all, task{pod: p, why: WhyPending})
		}
	}
	slices.SortStableFunc(all, func(a, b task) int {
		return cmp.Or(cmp.Compare(ptr.Deref(b.pod.Spec.Priority, 0), ptr.Deref(a.pod.Spec.Priority, 0)), a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time))
	})
	return all
}

// workloadOfPod is the workload that a pod is of: its controller, or that of its ReplicaSet.
func workloadOfPod(s *snapshot.Snapshot, p *corev1.Pod) Ref {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return Ref{}
	}
	of := Ref{p.Namespace, owner.Kind, owner.Name}
	if owner.Kind == "ReplicaSet" {
		if set, err := find[*appsv1.ReplicaSet](s, of); err == nil {
			if above := metav1.GetControllerOfNoCopy(set); above != nil {
				return Ref{p.Namespace, above.Kind, above.Name}
			}
		}
	}
	return of
}
