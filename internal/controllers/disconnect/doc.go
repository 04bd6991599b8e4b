// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disconnect is the controller that keeps pods whose nodes do not answer, where their policy says so, and makes Moves for those of
// Deployments: another pod takes their place, and when the node answers again one of the two goes.
//
// Kubernetes deletes such a pod when its toleration of the taint node.kubernetes.io/unreachable ends, and what is deleted cannot be kept any
// more. So the controller has the pod tolerate the taint for as long as it is kept. When the pod is lost, it tolerates it no more, and
// Kubernetes deletes it as it would have before.
//
//		node answers          node does not answer             replaceAfterSeconds            lostAfterSeconds
//		tolerated for 300 s   tolerated without end            a Move, for a Deployment       tolerated for 0 s
//
//	  - controller.go: the look at all pods on such nodes
//	  - toleration.go: for how long a pod tolerates that its node does not answer
//	  - rule.go: what a policy says of it
package disconnect
