// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import corev1 "k8s.io/api/core/v1"

// Prefix is that of every label and annotation devcluster gives a meaning to.
const Prefix = "devcluster.espalier.dev/"

// RunForAnnotation on a Job's pod says how long it runs before it succeeds, as a
// duration ("30s"). Without it the pod succeeds after a second.
const RunForAnnotation = Prefix + "run-for"

const defaultRunForMillis = 1000

// takenUp is the phase of a node that kwok has taken up and not started. It is none of Kubernetes' own, which nodes are made with by some.
const takenUp = corev1.NodePhase("TakenUp")

// Nodes are the stages of a node's life: it is taken up, and then becomes Ready, with the room and the
// addresses it was created with.
//
// kwok forgets a change of a pod whose node's lease it does not see that it holds, and it sees leases by a watch: on a busy machine a while
// after it has made one. But it plays a new node without that look. Were the node Ready by that, its first pods could stay Pending for ever.
// So the first stage only marks the node. The mark comes back to kwok as a change like any other, which it acts on with the lease alone:
// a node in the second stage is one whose pods run. Where the mark comes back too early, Wake makes another change.
func Nodes() []Stage {
	begun := []string{string(takenUp), string(corev1.NodeRunning)}
	return []Stage{
		{
			Name: "node-take-up", Kind: "Node",
			Match:  []Match{notReady, {JQ: ".status.phase", Operator: "NotIn", Values: begun}},
			Status: "phase: " + string(takenUp),
		},
		{
			Name: "node-start", Kind: "Node",
			Match:  []Match{notReady, {JQ: ".status.phase", Operator: "In", Values: begun}},
			Status: template("node-start"),
		},
	}
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
