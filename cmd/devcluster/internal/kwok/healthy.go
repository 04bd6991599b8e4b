// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

// Prefix is that of every label and annotation devcluster gives a meaning to.
const Prefix = "devcluster.espalier.dev/"

// RunForAnnotation on a Job's pod says how long it runs before it succeeds, as a
// duration ("30s"). Without it the pod succeeds after a second.
const RunForAnnotation = Prefix + "run-for"

const defaultRunForMillis = 1000

// Nodes are the stages of a node's life: it becomes Ready, with the room and the
// addresses it was created with.
func Nodes() []Stage {
	return []Stage{{
		Name: "node-start", Kind: "Node",
		Match:  []Match{notReady},
		Status: template("node-start"),
	}}
}

// Pods are the stages of a pod's life when nothing is wrong: it runs and is Ready at
// once, a Job's pod succeeds, and a deleted one is gone without waiting for its grace period.
func Pods() []Stage {
	return []Stage{
		{
			// Running but not Ready is met after a failure has been healed.
			Name: "pod-start", Kind: "Pod",
			Match:  []Match{notDeleted, phaseIn("Pending", "Running"), notReady},
			Status: template("pod-start"),
		},
		{
			Name: "pod-complete", Kind: "Pod",
			Match: []Match{
				notDeleted, phaseIn("Running"), ready,
				{JQ: ".metadata.ownerReferences.[].kind", Operator: "In", Values: []string{"Job"}},
			},
			DelayMillis: defaultRunForMillis,
			DelayFrom:   `.metadata.annotations["` + RunForAnnotation + `"]`,
			Status:      template("pod-complete"),
		},
		{
			// A pod whose grace period is 0 is removed by the API server itself, after it has shown it
			// as deleted for a moment. KWOK deletes by name and would hit the next pod of that name.
			Name: "pod-delete", Kind: "Pod",
			Match: []Match{
				deleted,
				{JQ: ".metadata.deletionGracePeriodSeconds == 0", Operator: "NotIn", Values: []string{"true"}},
			},
			Delete: true,
		},
	}
}
