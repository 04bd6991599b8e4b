// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
)

// Explanation says why a pod is pending, or is where it is.
type Explanation struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Scheduler string `json:"scheduler"`
	// Node is where it is, "" while it is pending.
	Node string `json:"node,omitempty"`
	// PlacedBy is what the scheduler wrote when it bound the pod.
	PlacedBy string `json:"placedBy,omitempty"`
	// Decision is how its node was chosen, by what the scheduler wrote then.
	Decision *decision.Decision `json:"decision,omitempty"`
	// Path leads from the first level down to its node, with what is there now. It is there for a pod that a tree has placed.
	Path []Turn `json:"path,omitempty"`
	// Order is where it is in the order of its partition, and why it waits if it does. It is "" for a pod of no allocation.
	Order string `json:"order,omitempty"`
	// Fits is how many nodes a pending pod fits on now, nil where the filters were not asked. Nodes is how many there are.
	Fits  *int `json:"fits,omitempty"`
	Nodes int  `json:"nodes"`
	// Reasons are why nodes refuse it, those of most nodes first.
	Reasons []Reason `json:"reasons,omitempty"`
	// Helps are single changes of the pod after which it would fit, those with most nodes first.
	Helps []Help `json:"helps,omitempty"`
	// Note says what keeps this from being the whole answer.
	Note string `json:"note,omitempty"`
}

// Turn is what is there at one level of a path.
type Turn struct {
	Level  string `json:"level"`
	Chosen Count  `json:"chosen"`
	// Others are its siblings, the best first.
	Others []Count `json:"others,omitempty"`
}

// Count is the pods of the workload in a branch or on a node.
type Count struct {
	Name  string `json:"name"`
	Pods  int32  `json:"pods"`
	State string `json:"state"`
}

// Reason is one, and the nodes that give it.
type Reason struct {
	Reason string   `json:"reason"`
	Nodes  []string `json:"nodes"`
}

// Help is a change after which a pod would fit.
type Help struct {
	Change string `json:"change"`
	// Fits is on how many nodes.
	Fits int `json:"fits"`
}

// Explain says why a pod is pending, or is where it is.
func (c *Cluster) Explain(ctx context.Context, namespace, name string) (*Explanation, error) {
	pods := snapshot.Of[*corev1.Pod](c.Snapshot)
	at := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Namespace == namespace && p.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("there is no pod/%s in namespace %q: -n names another namespace", name, namespace)
	}
	pod := pods[at]
	e := &Explanation{
		Namespace: namespace, Pod: name, Scheduler: pod.Spec.SchedulerName, Node: pod.Spec.NodeName,
		PlacedBy: pod.Annotations[clusterview.PlacedByAnnotation], Nodes: len(snapshot.Of[*corev1.Node](c.Snapshot)),
	}
	if !slices.Contains(c.Profiles(), pod.Spec.SchedulerName) {
		e.Note = fmt.Sprintf("Its schedulerName is %q. The configuration that was looked at has %q, so nothing is said of how it was placed.", pod.Spec.SchedulerName, c.Profiles())
		return e, nil
	}
	if gates := pod.Spec.SchedulingGates; e.Node == "" && len(gates) > 0 {
		var names []string
		for _, g := range gates {
			names = append(names, g.Name)
		}
		e.Note = fmt.Sprintf("No scheduler looks at it before its scheduling gates are removed: %s.", strings.Join(names, ", "))
		return e, nil
	}
	var held bool
	e.Order, held = c.orderOf(pod)
	switch {
	case ended(pod):
		e.Note = fmt.Sprintf("It has ended: its phase is %s.", pod.Status.Phase)
		return e, nil
	case e.Node == "" && pod.DeletionTimestamp != nil:
		e.Note = "It is being deleted, so that no scheduler places it."
		return e, nil
	case e.Node == "":
		return e, c.explainPending(ctx, e, pod, held)
	}
	return e, c.explainBound(ctx, e, pod)
}

// explainPending says of a pod without a node where it would fit, and why it has none. Held says that its order keeps it from being tried.
func (c *Cluster) explainPending(ctx context.Context, e *Explanation, pod *corev1.Pod, held bool) error {
	filtered, err := c.Filter(ctx, pod)
	if err != nil {
		return err
	}
	fits := len(filtered.Fits)
	e.Fits, e.Reasons = &fits, reasons(filtered.Refused)
	if fits > 0 {
		if e.Note = "It fits. Either the scheduler has not come to it yet, or no scheduler of this name runs."; held {
			e.Note = "It fits, and is not tried: the order says why."
		}
		return nil
	}
	for _, try := range changes(c.Snapshot, pod, filtered.Refused) {
		after, err := c.Filter(ctx, try.pod)
		if err != nil {
			return err
		}
		if n := len(after.Fits); n > 0 {
			e.Helps = append(e.Helps, Help{try.change, n})
		}
	}
	slices.SortStableFunc(e.Helps, func(a, b Help) int { return cmp.Compare(b.Fits, a.Fits) })
	if len(e.Helps) == 0 {
		e.Note = "No single change of the pod that was tried helps."
	}
	return nil
}

// explainBound reads what was written when the pod was bound, and walks down the tree that another pod like it would be placed by.
func (c *Cluster) explainBound(ctx context.Context, e *Explanation, pod *corev1.Pod) error {
	spread := c.trees[pod.Spec.SchedulerName]
	if spread == nil || !spread.Places(pod) {
		e.Note = "Its node was not chosen by a tree."
		return nil
	}
	if text := pod.Annotations[clusterview.DecisionAnnotation]; text != "" {
		if d, err := decision.Parse(text); err != nil {
			e.Note = fmt.Sprintf("Its annotation %s cannot be read: %v.", clusterview.DecisionAnnotation, err) // anybody may have written it
		} else {
			e.Decision = &d
		}
	}
	t, err := c.treeOf(ctx, Ref{pod.Namespace, "Pod", pod.Name}, replacement(pod))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		e.add(fmt.Sprintf("What is at each level now is not known: %v.", err))
		return nil
	}
	e.Path = path(t.All.Below, pod.Spec.NodeName)
	if e.Path == nil {
		e.add(fmt.Sprintf("Its levels leave node %s out, or the node is gone.", pod.Spec.NodeName))
	}
	return nil
}

// add adds a sentence to the note.
func (e *Explanation) add(sentence string) { e.Note = strings.TrimSpace(e.Note + " " + sentence) }

// path returns the way to a node, nil if it is not below the branches.
func path(branches []Branch, node string) []Turn {
	for i := range branches {
		b := &branches[i]
		var below []Turn
		if b.Level != "node" {
			if below = path(b.Below, node); below == nil {
				continue
			}
		} else if b.Name != node {
			continue
		}
		turn := Turn{Level: b.Level, Chosen: countOf(b)}
		for j := range branches {
			if j != i {
				turn.Others = append(turn.Others, countOf(&branches[j]))
			}
		}
		return append([]Turn{turn}, below...)
	}
	return nil
}

func countOf(b *Branch) Count { return Count{b.Name, b.Pods, b.State} }

// reasons puts the nodes together that give the same reason.
func reasons(refused map[string][]string) []Reason {
	by := make(map[string][]string)
	for node, all := range refused {
		for _, reason := range all {
			by[reason] = append(by[reason], node)
		}
	}
	var out []Reason
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[reason])
		out = append(out, Reason{reason, by[reason]})
	}
	slices.SortStableFunc(out, func(a, b Reason) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	return out
}
