// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/tree"
)

// Tree is how the pods of a workload are spread.
type Tree struct {
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	// Scheduler is the schedulerName of its pods.
	Scheduler string `json:"scheduler"`
	// PlacedBy says who says over which levels its pods are placed, as the annotation espalier.dev/placed-by does.
	PlacedBy string `json:"placedBy"`
	// Levels are in the order in which its next pod is placed over them, in the syntax of the annotation espalier.dev/placement.
	Levels []string `json:"levels"`
	// Misplaced counts the pods that would have to move for it to be even. It is complete or not there.
	Misplaced []Misplaced `json:"misplaced"`
	// Notices has a sentence on each thing that the workload asks for and that has no effect.
	Notices []string `json:"notices,omitempty"`
	// All is the whole cluster.
	All Branch `json:"all"`
	// Refused says why the next pod fits on no node, "" if it fits on one.
	Refused string `json:"refused,omitempty"`
}

// Misplaced counts the misplaced pods at a level.
type Misplaced struct {
	// Level is the key of one, or "node" for the nodes below the last.
	Level string `json:"level"`
	Pods  int64  `json:"pods"`
}

// Branch is the nodes with one value at a level, or a node.
type Branch struct {
	// Level is the key of that which divides it from its siblings, or "node"; "" for all.
	Level string `json:"level,omitempty"`
	Name  string `json:"name"`
	// Pods are those of the workload's latest revision, All with its other revisions.
	Pods int32 `json:"pods"`
	All  int32 `json:"allRevisions"`
	// Others are the pods of everybody.
	Others int64 `json:"podsOfEverybody"`
	// Fits says that the next pod fits there.
	Fits bool `json:"fits"`
	// Room is for how many pods like the next one there are resources on the nodes that it fits on.
	Room int64 `json:"room"`
	// State says how many of its nodes are open, and what is held against it.
	State string `json:"state"`
	// Reasons are why the next pod does not fit on a node.
	Reasons []string `json:"reasons,omitempty"`
	// Below are its branches, or its nodes, the best first.
	Below []Branch `json:"below,omitempty"`
}

// Tree returns how a workload is spread, by its next pod.
func (c *Cluster) Tree(ctx context.Context, of Ref) (Tree, error) {
	pod, err := NextPod(c.Snapshot, of)
	if err != nil {
		return Tree{}, err
	}
	return c.treeOf(ctx, of, pod)
}

// TreeOver returns how the pods of a workload are spread over other levels than its own: in the syntax of the annotation
// espalier.dev/placement, where a key alone is a level that spreads.
func (c *Cluster) TreeOver(ctx context.Context, of Ref, levels string) (Tree, error) {
	pod, err := NextPod(c.Snapshot, of)
	if err != nil {
		return Tree{}, err
	}
	parts := strings.Split(levels, ",")
	for i, part := range parts {
		if !strings.Contains(part, "=") {
			parts[i] = "spread=" + strings.TrimSpace(part)
		}
	}
	levels = strings.Join(parts, ",")
	if _, err := level.Parse(levels); err != nil {
		return Tree{}, fmt.Errorf("--levels: %w", err)
	}
	if pod.Annotations == nil {
		pod.Annotations = make(map[string]string)
	}
	pod.Annotations[clusterview.PlacementAnnotation] = levels
	// It is no news that its own constraints have no effect then.
	pod.Spec.TopologySpreadConstraints = slices.DeleteFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.ScheduleAnyway
	})
	t, err := c.treeOf(ctx, of, pod)
	if err == nil && clusterview.ByPolicy(t.PlacedBy) {
		err = fmt.Errorf("%s: its pods are placed by a policy that overrides other levels: %s", of, t.PlacedBy)
	}
	return t, err
}

func (c *Cluster) treeOf(ctx context.Context, of Ref, pod *corev1.Pod) (Tree, error) {
	if !slices.Contains(c.Profiles(), pod.Spec.SchedulerName) {
		return Tree{}, fmt.Errorf("%s: its schedulerName is %q, and the configuration has %q: set it in the pod template, or give the scheduler's configuration with --scheduler-config", of, pod.Spec.SchedulerName, c.Profiles())
	}
	pod, missing := withoutMissingClaims(c.Snapshot, pod)
	filtered, err := c.Filter(ctx, pod)
	if err != nil {
		return Tree{}, err
	}
	spread := c.trees[pod.Spec.SchedulerName]
	if spread == nil {
		return Tree{}, fmt.Errorf("%s: the profile %q has no plugin SpreadTree, so that its pods are not spread by a tree", of, pod.Spec.SchedulerName)
	}
	if !spread.Places(pod) {
		return Tree{}, fmt.Errorf("%s: its pods have their node already, so that there is nothing to spread", of)
	}
	if filtered.Message != "" && len(filtered.Fits) == 0 {
		if _, found, err := clusterview.ReadLevels(filtered.State); err != nil || !found {
			return Tree{}, fmt.Errorf("%s: %s", of, filtered.Message)
		}
	}
	outline, err := spread.Outline(ctx, filtered.State, pod, filtered.Fits, true)
	if err != nil {
		return Tree{}, fmt.Errorf("%s: %w", of, err)
	}
	t := Tree{
		Namespace: of.Namespace, Workload: of.String(), Scheduler: pod.Spec.SchedulerName,
		PlacedBy: outline.Levels.PlacedBy(), Levels: []string{},
		Notices: slices.Concat(clusterview.Ignored(pod, outline.Levels), outline.Undecided, missing),
	}
	keys := make(map[string]string) // by the levels
	for i, pods := range outline.Misplaced {
		at := "node"
		if i < len(outline.Levels.List) {
			l := outline.Levels.List[i]
			at = l.Property.String()
			keys[l.String()] = at
			t.Levels = append(t.Levels, l.String())
		}
		t.Misplaced = append(t.Misplaced, Misplaced{at, pods})
	}
	room, err := c.Room(pod)
	if err != nil {
		return Tree{}, err
	}
	t.All = (&branches{filtered.Refused, room, keys}).branch(&outline.Root)
	if len(filtered.Fits) == 0 {
		t.Refused = filtered.Message
	}
	return t, nil
}

// branches is what is known of nodes beside a tree, and the keys of its levels.
type branches struct {
	refused map[string][]string
	room    map[string]int64
	keys    map[string]string
}

// branch is one for output. A host with the node of its name is that node.
func (o *branches) branch(b *tree.Branch) Branch {
	out := Branch{Level: cmp.Or(o.keys[b.What], b.What), Name: b.Label, Pods: b.Revision, All: b.Workload, Others: b.Pods, Fits: b.Open, State: b.State}
	if b.What == "node" {
		out.Reasons = o.refused[b.Label]
		if out.Fits {
			out.Room = o.room[b.Label]
		}
	}
	for i := range b.Below {
		below := o.branch(&b.Below[i])
		out.Below = append(out.Below, below)
		out.Fits = out.Fits || below.Fits
		out.Room += below.Room
	}
	if len(out.Below) == 1 && out.Below[0].Level == "node" && out.Below[0].Name == out.Name {
		return out.Below[0]
	}
	return out
}
