// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Preassigned reports whether a pod's node was chosen before any scheduler saw it:
// by its controller, or by a required node affinity that names one node. Such a pod
// is checked and counted, never spread.
//
// A selector of kubernetes.io/hostname does not count: a label may be on several
// nodes, and to know that it is not would take a look at all of them.
func Preassigned(pod *corev1.Pod) bool {
	return Daemon(pod) || pinned(pod)
}

// Daemon reports whether a pod's controller chooses the nodes of its pods: a
// DaemonSet, or the node itself, which runs its static pods. What is asked of a
// workload's nodes, such as a label or a limit, is no matter of theirs. Other
// preassigned pods are held to it: somebody who pins a pod has not said otherwise.
func Daemon(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && (isKind(owner, appsv1.GroupName, "DaemonSet") || isKind(owner, corev1.GroupName, "Node"))
}

// pinned reports whether a pod's required node affinity leaves it one node, by
// name. It reads the terms as the in-tree NodeAffinity does, which has the framework
// look at that node alone: terms are alternatives, requirements of a term add up.
func pinned(pod *corev1.Pod) bool {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	pin := ""
	for i := range terms {
		name, ok := nodeName(terms[i].MatchFields)
		if !ok || pin != "" && name != "" && name != pin {
			return false
		}
		pin = cmp.Or(pin, name)
	}
	return pin != ""
}

// nodeName is the one node that a term's fields allow, "" if they contradict each
// other. ok is false if they allow all nodes. The API server takes fields with one value only.
func nodeName(fields []corev1.NodeSelectorRequirement) (name string, ok bool) {
	contradict := false
	for _, f := range fields {
		if f.Key != metav1.ObjectNameField || f.Operator != corev1.NodeSelectorOpIn || len(f.Values) != 1 {
			continue
		}
		contradict = contradict || ok && f.Values[0] != name
		name, ok = f.Values[0], true
	}
	if contradict {
		return "", true
	}
	return name, ok
}
