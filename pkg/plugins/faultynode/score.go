// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultynode

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// scoresKey is where the scores of the cycle's nodes are kept.
const scoresKey fwk.StateKey = "PreScore" + Name

// The scores of nodes, best first. Faulty nodes and those on trial are so far from the
// others that the shipped weight outvotes all in-tree scorers between them.
const (
	scoreSound  = fwk.MaxScore // nothing against it, or something has succeeded since
	scoreOpen   = 90           // has failed, and nothing is being tried there
	scoreTrial  = 50           // has failed, and a pod is being tried there
	scoreFaulty = 20           // has failed as often as the threshold says; one less for each time more
)

// scores are by node name, for all nodes that fit.
type scores map[string]int64

// Clone shares the scores: they are written once.
func (s scores) Clone() fwk.StateData { return s }

// PreScore looks at how the pod's revision has fared on the nodes that passed the
// filters. It skips the pods of which nothing is known.
func (pl *FaultyNode) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	faults, err := clusterview.ReadFaults(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if faults == nil || !pl.cache.Known(pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	of, rule := pl.cache.Identify(pod), faults.Rule()
	s := make(scores, len(nodes))
	for _, n := range nodes {
		name := n.Node().Name
		s[name] = score(rule, faults.Record(of, name))
	}
	state.Write(scoresKey, s)
	return nil
}

func score(rule placement.Faults, r placement.Record) int64 {
	threshold := max(rule.Threshold, 1)
	switch {
	case r.Failures >= threshold:
		return max(scoreFaulty-int64(r.Failures-threshold), fwk.MinScore)
	case !rule.HalfOpen || r.Unforgiven == 0 || r.Proven:
		return scoreSound
	case r.Unproven > 0:
		return scoreTrial
	default:
		return scoreOpen
	}
}

// Score returns how the node has fared.
func (pl *FaultyNode) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(scoresKey)
	if err != nil {
		return 0, fwk.AsStatus(fmt.Errorf("reading %q: %w", scoresKey, err))
	}
	s, ok := data.(scores)
	if !ok {
		return 0, fwk.AsStatus(fmt.Errorf("reading %q: it holds a %T", scoresKey, data))
	}
	return s[node.Node().Name], nil
}

// ScoreExtensions returns nothing: a score says the same whatever the others are.
func (pl *FaultyNode) ScoreExtensions() fwk.ScoreExtensions { return nil }
