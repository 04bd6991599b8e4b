// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Who of ours writes the ends of nodes.
const (
	// ByNodeClaim is the controller that takes them from NodeClaims.
	ByNodeClaim = "NodeClaim"
	// BySchedule is the controller that gives the nodes of a pool ends on several days.
	BySchedule = "Schedule"
)

// EndIsBy reports whether a node's end was written by a writer of ours, and nobody has changed it since.
func EndIsBy(node *corev1.Node, writer string) bool {
	end, ok := node.Annotations[ValidUntilAnnotation]
	return ok && node.Annotations[ValidUntilByAnnotation] == writer+" "+end
}

// SetEnd gives a node an end by a writer of ours, none with the zero time.
func SetEnd(node *corev1.Node, writer string, end time.Time) {
	if end.IsZero() {
		delete(node.Annotations, ValidUntilAnnotation)
		delete(node.Annotations, ValidUntilByAnnotation)
		return
	}
	text := end.UTC().Format(time.RFC3339)
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, ValidUntilAnnotation, text)
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, ValidUntilByAnnotation, writer+" "+text)
}

// UpSince is since when a node runs: since the boot that is written down on it. It is false where none is, or another one: then the node has
// been rebooted since, or was not seen before.
func UpSince(node *corev1.Node) (since time.Time, ok bool) {
	text, boot, _ := strings.Cut(node.Annotations[UpSinceAnnotation], " ")
	since, err := time.Parse(time.RFC3339, text)
	return since, err == nil && boot == node.Status.NodeInfo.BootID
}

// Rebooted reports that a node runs by another boot than the one that is written down on it.
func Rebooted(node *corev1.Node) bool {
	_, boot, written := strings.Cut(node.Annotations[UpSinceAnnotation], " ")
	return written && boot != node.Status.NodeInfo.BootID
}

// SetUpSince writes down on a node since when it runs.
func SetUpSince(node *corev1.Node, since time.Time) {
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, UpSinceAnnotation, since.UTC().Format(time.RFC3339)+" "+node.Status.NodeInfo.BootID)
}
