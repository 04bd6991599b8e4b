// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
)

// controlPlaneLabel is on the nodes that Docker calls managers, whatever its value.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// Constraints reads the constraints of a pod's annotation; none if it has no such
// annotation. An error quotes what cannot be read and says what is allowed.
func Constraints(pod *corev1.Pod) ([]constraint.Constraint, error) {
	text, ok := pod.Annotations[ConstraintsAnnotation]
	if !ok {
		return nil, nil
	}
	constraints, err := constraint.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", ConstraintsAnnotation, err)
	}
	return constraints, nil
}

// ConstrainsAddresses reports whether a pod has constraints about addresses of nodes. A node
// may get another address without an event, and before the scheduler's cache knows of it.
func ConstrainsAddresses(pod *corev1.Pod) bool {
	constraints, err := Constraints(pod)
	return err == nil && constraint.About(constraints, constraint.IP)
}

// ConstraintNode is a node as constraints see it.
//
// Its ID is the UID of the Node object: like Docker's, it is given when the node
// joins, and a node that joins again under the same name has another. The machine ID
// would be the same after a reinstallation from one image, even on several machines.
func ConstraintNode(node *corev1.Node) constraint.Node {
	_, manager := node.Labels[controlPlaneLabel]
	return constraint.Node{
		ID:        string(node.UID),
		Name:      node.Name,
		Hostname:  node.Labels[corev1.LabelHostname],
		OS:        node.Labels[corev1.LabelOSStable],
		Arch:      node.Labels[corev1.LabelArchStable],
		Manager:   manager,
		Labels:    node.Labels,
		Addresses: addresses(node),
	}
}

// addresses are a node's inner and outer IP addresses. Names are left out: a name
// that reads like an address is still not where the node can be reached.
func addresses(node *corev1.Node) []string {
	var texts []string
	for i := range node.Status.Addresses {
		switch a := &node.Status.Addresses[i]; a.Type {
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			texts = append(texts, a.Address)
		}
	}
	return texts
}
