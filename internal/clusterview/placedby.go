// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"strings"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// MaxPlacedBy bounds the value of PlacedByAnnotation, in bytes. Levels beyond it are left out, and "..." stands for them.
const MaxPlacedBy = 512

// The value is SOURCE LEVEL,LEVEL,... where the source may be policy/NAME@GENERATION or clusterpolicy/NAME@GENERATION.
const (
	policySource        = "policy/"
	clusterPolicySource = "clusterpolicy/"
	atGeneration        = "@"
	beforeLevels        = " "
	moreLevels          = ",..."
)

// placedByKey is where the levels are that a pod is placed by, in their order.
const placedByKey fwk.StateKey = "Espalier/PlacedBy"

// WritePlacedBy leaves the levels that a pod is placed by, in the order in which they are, for whoever binds it.
func WritePlacedBy(state fwk.CycleState, levels Levels) {
	state.Write(placedByKey, &cycleLevels{levels: levels})
}

// ReadPlacedBy returns what was left by WritePlacedBy. A pod that is not spread has nothing there.
func ReadPlacedBy(state fwk.CycleState) (levels Levels, found bool) {
	data, err := state.Read(placedByKey)
	if err != nil {
		return Levels{}, false
	}
	c, ok := data.(*cycleLevels)
	if !ok {
		return Levels{}, false
	}
	return c.levels, true
}

// PlacedBy is the value of PlacedByAnnotation: who says over which levels, and the levels in the syntax of
// PlacementAnnotation. For example:
//
//	constraints spread=topology.kubernetes.io/zone;nodesWithoutKey=LastResort,spread=kubernetes.io/hostname
//	policy/frontend@3 spread=topology.kubernetes.io/zone;weight.zone-a=70;weight.zone-b=30
func (l Levels) PlacedBy() string {
	var text strings.Builder
	switch l.Source {
	case FromAnnotation:
		text.WriteString("annotation")
	case FromPolicy:
		fmt.Fprintf(&text, "%s%s%d", l.Policy.placedBy(), atGeneration, l.Policy.Generation)
	case FromConstraints:
		text.WriteString("constraints")
	case FromDefaults:
		text.WriteString("defaults")
	}
	for i, one := range l.List {
		next := "," + one.String()
		if i == 0 {
			next = beforeLevels + one.String()
		}
		room := MaxPlacedBy - text.Len()
		if i < len(l.List)-1 {
			room -= len(moreLevels)
		}
		if len(next) > room {
			text.WriteString(moreLevels)
			break
		}
		text.WriteString(next)
	}
	return text.String()
}

// placedBy is the policy in a value of PlacedByAnnotation, but for its generation.
func (p *Policy) placedBy() string {
	if p.Cluster() {
		return clusterPolicySource + p.Name
	}
	return policySource + p.Name
}

// Placed reports whether a pod was placed over the policy's levels, by the value of the pod's PlacedByAnnotation.
func (p *Policy) Placed(placedBy string) bool {
	source, _, _ := strings.Cut(placedBy, beforeLevels)
	policy, _, _ := strings.Cut(source, atGeneration)
	return policy == p.placedBy()
}

// ByPolicy reports that a pod was placed over the levels of a policy, by the value of its PlacedByAnnotation.
func ByPolicy(placedBy string) bool {
	return strings.HasPrefix(placedBy, policySource) || strings.HasPrefix(placedBy, clusterPolicySource)
}

// LevelsPlacedBy are the levels in a value of PlacedByAnnotation. It is false where there are none, or some are left out.
func LevelsPlacedBy(placedBy string) ([]level.Level, bool) {
	_, text, _ := strings.Cut(placedBy, beforeLevels)
	if text == "" || strings.HasSuffix(text, moreLevels) {
		return nil, false
	}
	levels, err := level.Parse(text)
	return levels, err == nil && len(levels) > 0
}

// Trimmed is a value of PlacedByAnnotation with nothing but what Placed reads.
func Trimmed(placedBy string) string {
	source, _, _ := strings.Cut(placedBy, beforeLevels)
	return source
}
