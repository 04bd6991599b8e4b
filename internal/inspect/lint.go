// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Lint is what a manifest means in a cluster.
type Lint struct {
	Objects []Linted `json:"objects"`
	// Ignored names the kinds of objects that are ignored.
	Ignored []string `json:"ignored,omitempty"`
}

// Linted is what one object means.
type Linted struct {
	Namespace string `json:"namespace,omitempty"`
	Object    string `json:"object"`
	// PlacedBy says who says over which levels its pods are placed.
	PlacedBy string `json:"placedBy,omitempty"`
	// Means has a sentence on each of the levels, in their order.
	Means []string `json:"means,omitempty"`
	// Problems are why its pods would wait, or why a policy is refused.
	Problems []string `json:"problems,omitempty"`
	// Warnings are what has no effect.
	Warnings []string `json:"warnings,omitempty"`
}

// Problems counts those of all objects.
func (l *Lint) Problems() (n int) {
	for i := range l.Objects {
		n += len(l.Objects[i].Problems)
	}
	return n
}

// asked are the annotations that people write on pods.
var asked = sets.New(clusterview.PlacementAnnotation, clusterview.DomainLimitsAnnotation, clusterview.ConstraintsAnnotation, clusterview.PlatformsAnnotation)

// LintManifest says what a manifest means in the cluster of a snapshot.
func LintManifest(ctx context.Context, s *snapshot.Snapshot, configuration []byte, m *Manifest) (*Lint, error) {
	changed := *s
	changed.Policies = withPolicies(s.Policies, m.Policies)
	changed.Objects = m.beside(s, s.Objects)
	type next struct {
		w   *Workload
		pod *corev1.Pod
	}
	var pods []next
	for i := range m.Workloads {
		w := &m.Workloads[i]
		pod, made := w.next(s)
		if made != nil {
			changed.Objects = append(changed.Objects, made)
		}
		pods = append(pods, next{w, pod})
	}
	c, err := Open(ctx, &changed, configuration, AllNodes)
	if err != nil {
		return nil, err
	}
	l := &Lint{Ignored: m.Others}
	for _, one := range pods {
		is, err := c.lint(ctx, one.w, one.pod)
		if err != nil {
			return nil, err
		}
		l.Objects = append(l.Objects, *is)
	}
	for _, p := range m.Policies {
		l.Objects = append(l.Objects, lintPolicy(p))
	}
	return l, nil
}

func (c *Cluster) lint(ctx context.Context, w *Workload, pod *corev1.Pod) (*Linted, error) {
	l := &Linted{Namespace: w.Namespace, Object: w.String()}
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		if strings.HasPrefix(key, clusterview.Prefix) && !asked.Has(key) {
			l.Warnings = append(l.Warnings, fmt.Sprintf("The annotation %s means nothing: those that do are %s.", key, strings.Join(sets.List(asked), ", ")))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.annotations)) {
		if asked.Has(key) {
			l.Warnings = append(l.Warnings, fmt.Sprintf("The annotation %s means nothing on the %s itself: write it on the pod template.", key, w.Kind))
		}
	}
	if !slices.Contains(c.Profiles(), pod.Spec.SchedulerName) {
		l.Warnings = append(l.Warnings, fmt.Sprintf("Its schedulerName is %q, and the configuration has %q: Espalier does not place its pods.", pod.Spec.SchedulerName, c.Profiles()))
		return l, nil
	}
	l.Warnings = append(l.Warnings, c.undivided(pod)...)
	pod, _ = withoutMissingClaims(c.Snapshot, pod)
	pre, err := c.PreFilter(ctx, pod)
	if err != nil {
		return nil, err
	}
	if pre.Message != "" {
		l.Problems = append(l.Problems, pre.Message)
	}
	spread := c.trees[pod.Spec.SchedulerName]
	if _, found, err := clusterview.ReadLevels(pre.State); err != nil || !found || spread == nil || !spread.Places(pod) {
		return l, nil //nolint:nilerr // the message says it
	}
	outline, err := spread.Outline(ctx, pre.State, pod, nil, false)
	if err != nil {
		l.Problems = append(l.Problems, err.Error())
		return l, nil
	}
	l.PlacedBy = outline.Levels.PlacedBy()
	for i := range outline.Levels.List {
		l.Means = append(l.Means, means(&outline.Levels.List[i]))
	}
	l.Warnings = append(l.Warnings, clusterview.Ignored(pod, outline.Levels)...)
	l.Warnings = append(l.Warnings, outline.Undecided...)
	return l, nil
}

// undivided says over which keys of a pod's constraints nothing is spread: all nodes that have the label have one value.
func (c *Cluster) undivided(pod *corev1.Pod) (all []string) {
	for i := range pod.Spec.TopologySpreadConstraints {
		key, values, nodes := pod.Spec.TopologySpreadConstraints[i].TopologyKey, sets.New[string](), 0
		for _, n := range snapshot.Of[*corev1.Node](c.Snapshot) {
			if value, has := n.Labels[key]; has {
				values.Insert(value)
				nodes++
			}
		}
		if len(values) == 1 && nodes > 1 {
			all = append(all, fmt.Sprintf("The constraint over %q spreads nothing: all %d nodes with this label have the value %q.", key, nodes, sets.List(values)[0]))
		}
	}
	return all
}

// means is a level in a sentence.
func means(l *level.Level) string {
	key := l.Property.String()
	var does string
	switch {
	case l.Strategy == level.Pack:
		does = fmt.Sprintf("Pods fill one value of %s after the other", key)
	case l.Share == level.Allocatable:
		does = fmt.Sprintf("Each value of %s gets pods in proportion to the CPU of its nodes", key)
	case len(l.Weights) > 0:
		shares := make([]string, len(l.Weights))
		for i, w := range l.Weights {
			shares[i] = w.String()
		}
		does = fmt.Sprintf("The values of %s get pods in proportion to their shares (%s)", key, strings.Join(shares, ", "))
	default:
		does = fmt.Sprintf("Each value of %s gets as many pods as the others", key)
	}
	switch l.NodesWithoutKey {
	case level.Exclude:
		return does + "; nodes without it get none."
	case level.OwnDomain:
		return does + "; nodes without it are one more value."
	default:
		return does + "; nodes without it come last."
	}
}

func lintPolicy(p *unstructured.Unstructured) Linted {
	l := Linted{Namespace: p.GetNamespace(), Object: strings.ToLower(p.GetKind()) + "/" + p.GetName()}
	read := clusterview.DecodePolicy(p)
	if err := read.Err(); err != nil {
		l.Problems = append(l.Problems, err.Error())
		return l
	}
	levels, err := read.Levels()
	if err != nil {
		l.Problems = append(l.Problems, err.Error())
	}
	for i := range levels {
		l.Means = append(l.Means, means(&levels[i]))
	}
	return l
}
