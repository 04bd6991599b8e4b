// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A pod that waits for a node is bound to a new one in the moment in which that takes pods. It runs: the node takes none before
// somebody plays it. KWOK forgets the pods of a node that it has not in its hands.
func TestAPodThatWaitsForANewNode(t *testing.T) {
	s := begin(t, byZone)
	s.pod("app", s.template("app", ""))
	s.refusal("app")
	node := s.newNode(1, zone("zone-a"))
	notReady := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse
	})
	if *nodesFlag == "devcluster" && !notReady {
		s.Errorf("devcluster makes a new node with conditions %v: without Ready=False it takes pods at once", node.Status.Conditions)
	}
	s.settled("app", 1)
}
