// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
)

// PlatformWish reads what a pod wants of its node's platform: the operating system of
// its spec, and the platforms of its annotation. Both must be fulfilled. An error
// quotes what cannot be read and says what is allowed.
func PlatformWish(pod *corev1.Pod) (platform.Wish, error) {
	var wish platform.Wish
	if pod.Spec.OS != nil {
		wish.OS = string(pod.Spec.OS.Name)
	}
	text, ok := pod.Annotations[PlatformsAnnotation]
	if !ok {
		return wish, nil
	}
	listed, err := platform.Parse(text)
	if err != nil {
		return platform.Wish{}, fmt.Errorf("annotation %s: %w", PlatformsAnnotation, err)
	}
	wish.Listed = listed
	return wish, nil
}

// NodePlatform is a node's platform, by the labels that every kubelet keeps true.
func NodePlatform(node *corev1.Node) platform.Platform {
	return platform.Platform{OS: node.Labels[corev1.LabelOSStable], Arch: node.Labels[corev1.LabelArchStable]}
}
