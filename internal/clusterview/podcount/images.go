// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// images counts by their names the nodes that have an image. A pod whose images no node has can be told at once from one of which
// nodes are to be compared.
type images map[string]int

// replace counts a node that has other images than before. Either may be nil.
func (m images) replace(before, after *corev1.Node) {
	if before != nil && after != nil && slices.EqualFunc(before.Status.Images, after.Status.Images, sameNames) {
		return // as most updates of a node are
	}
	m.add(after, 1)
	m.add(before, -1)
}

func sameNames(a, b corev1.ContainerImage) bool { return slices.Equal(a.Names, b.Names) }

func (m images) add(node *corev1.Node, n int) {
	if node == nil {
		return
	}
	for i := range node.Status.Images {
		for _, name := range node.Status.Images[i].Names {
			if m[name] += n; m[name] == 0 {
				delete(m, name)
			}
		}
	}
}

// HasImage reports whether any node has one of the images that ImageLocality looks for: those of containers and of image volumes.
func (c *Index) HasImage(pod *corev1.Pod) bool {
	if len(c.images) == 0 {
		return false
	}
	has := func(image string) bool {
		if strings.LastIndexByte(image, ':') <= strings.LastIndexByte(image, '/') {
			image += ":latest"
		}
		return c.images[image] > 0
	}
	ofContainer := func(container corev1.Container) bool { return has(container.Image) }
	return slices.ContainsFunc(pod.Spec.Containers, ofContainer) || slices.ContainsFunc(pod.Spec.InitContainers, ofContainer) ||
		slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Image != nil && has(v.Image.Reference) })
}
