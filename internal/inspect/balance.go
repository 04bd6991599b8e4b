// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// Balance is how even the workloads are, those with the most misplaced pods first.
type Balance struct {
	Workloads []Standing `json:"workloads"`
	// Unread names what of the cluster could not be read.
	Unread []string `json:"unread,omitempty"`
}

// Uneven are the workloads with misplaced pods, and those of which nothing is known.
func (b *Balance) Uneven() []Standing {
	return slices.DeleteFunc(slices.Clone(b.Workloads), func(s Standing) bool { return s.Misplaced == 0 && s.Note == "" })
}

// Standing is how even a workload is.
type Standing struct {
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	Scheduler string `json:"scheduler"`
	// Pods are those of its latest revision.
	Pods int32 `json:"pods"`
	// Misplaced counts those that would have to move, in all and by level.
	Misplaced int64       `json:"misplaced"`
	ByLevel   []Misplaced `json:"byLevel"`
	// Note says why nothing is known of it, "" if it is.
	Note string `json:"note,omitempty"`
}

// Balance returns how even the workloads are whose schedulers the configuration has, of one namespace or of all if it is "". Progress is
// told how many of all it has looked at.
//
// The filters are asked once for all workloads that they cannot tell apart. Where they look further than at one node, as for required
// anti-affinity, or where levels leave nodes out, they are asked for each.
func (c *Cluster) Balance(ctx context.Context, namespace string, progress func(done, all int)) (*Balance, error) {
	refs := refs(c.Snapshot, namespace)
	out := &Balance{Workloads: []Standing{}, Unread: c.Unread}
	known, owners := make(map[class]sets.Set[string]), owners(c.Snapshot)
	for i, of := range refs {
		progress(i, len(refs))
		pod, err := NextPod(owners, of)
		if err != nil || !slices.Contains(c.Profiles(), pod.Spec.SchedulerName) {
			continue // it has made no pods yet, or they are somebody else's
		}
		spread := c.trees[pod.Spec.SchedulerName]
		if spread == nil || !spread.Places(pod) {
			continue
		}
		s, err := c.standing(ctx, of, pod, known)
		if err != nil {
			return nil, err
		}
		out.Workloads = append(out.Workloads, *s)
	}
	slices.SortStableFunc(out.Workloads, func(a, b Standing) int { return cmp.Compare(b.Misplaced, a.Misplaced) })
	return out, nil
}

// class is workloads that the filters cannot tell apart.
type class struct {
	scheduler string
	needs     clusterview.Needs
}

func (c *Cluster) standing(ctx context.Context, of Ref, pod *corev1.Pod, known map[class]sets.Set[string]) (*Standing, error) {
	pod, _ = withoutMissingClaims(c.Snapshot, pod)
	s := &Standing{Namespace: of.Namespace, Workload: of.String(), Scheduler: pod.Spec.SchedulerName, ByLevel: []Misplaced{}}
	pre, err := c.PreFilter(ctx, pod)
	if err != nil {
		return nil, err
	}
	levels, found, err := clusterview.ReadLevels(pre.State)
	if err != nil || !found {
		s.Note = pre.Message
		return s, nil //nolint:nilerr // the message says the same
	}
	needs, err := clusterview.NeedsOf(pod)
	if err != nil {
		return nil, err
	}
	alike := class{pod.Spec.SchedulerName, needs + clusterview.AddedNeeds(pre.State)}
	fits, is := known[alike]
	if lasts := pre.Lasting && !clusterview.AnyExcludes(levels.List); !lasts || !is {
		filtered, err := c.Filter(ctx, pod)
		if err != nil {
			return nil, err
		}
		if fits = filtered.Fits; lasts {
			known[alike] = fits
		}
	}
	outline, err := c.trees[pod.Spec.SchedulerName].Outline(ctx, pre.State, pod, fits, false)
	if err != nil {
		s.Note = err.Error()
		return s, nil //nolint:nilerr // of others more is known
	}
	s.Pods = outline.Root.Revision
	for i, pods := range outline.Misplaced {
		at := "node"
		if i < len(outline.Levels.List) {
			at = outline.Levels.List[i].Property.String()
		}
		s.ByLevel = append(s.ByLevel, Misplaced{at, pods})
		s.Misplaced += pods
	}
	return s, nil
}

// owners is a snapshot without its nodes, and without the pods but those of StatefulSets, which are numbered. NextPod looks through all objects, which
// for each of thousands of workloads would be most of the time.
func owners(s *snapshot.Snapshot) *snapshot.Snapshot {
	few := *s
	few.Objects = nil
	for _, o := range s.Objects {
		switch o := o.(type) {
		case *corev1.Node:
			continue
		case *corev1.Pod:
			if owner := metav1.GetControllerOfNoCopy(o); owner == nil || owner.Kind != "StatefulSet" {
				continue
			}
		}
		few.Objects = append(few.Objects, o)
	}
	return &few
}

// refs are the workloads of a snapshot: those that own pods themselves, or by a ReplicaSet.
func refs(s *snapshot.Snapshot, namespace string) []Ref {
	var all []Ref
	add := func(o metav1.Object, kind string) {
		if namespace == "" || o.GetNamespace() == namespace {
			all = append(all, Ref{o.GetNamespace(), kind, o.GetName()})
		}
	}
	for _, o := range s.Objects {
		switch o := o.(type) {
		case *appsv1.Deployment:
			add(o, "Deployment")
		case *appsv1.StatefulSet:
			add(o, "StatefulSet")
		case *appsv1.ReplicaSet:
			// Others than a Deployment make ReplicaSets too, such as rollouts. Of their former revisions there are no pods.
			if owner := metav1.GetControllerOfNoCopy(o); owner == nil || owner.Kind != "Deployment" && ptr.Deref(o.Spec.Replicas, 1) > 0 {
				add(o, "ReplicaSet")
			}
		case *corev1.ReplicationController:
			add(o, "ReplicationController")
		}
	}
	return all
}
