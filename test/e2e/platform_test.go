// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	constraintsAnnotation = "espalier.dev/constraints"
	platformsAnnotation   = "espalier.dev/platforms"
)

// built is the labels of a node in a zone with an operating system and an architecture.
func built(zone, os, arch string) map[string]string {
	return map[string]string{zoneLabel: zone, corev1.LabelOSStable: os, corev1.LabelArchStable: arch}
}

// with adds an annotation to a template.
func with(template corev1.PodTemplateSpec, key, value string) corev1.PodTemplateSpec {
	template.Annotations[key] = value
	return template
}

// relabel changes one label of a node.
func (s *story) relabel(node, key, value string) {
	s.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	_, err := s.client.CoreV1().Nodes().Patch(s.ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err, "labelling node "+node)
}

// says fails the story unless the pod is refused, by condition and event, with the words.
func (s *story) says(pod, want string) {
	s.Helper()
	condition, event := s.refusal(pod)
	for _, message := range []string{condition, event} {
		if !strings.Contains(message, want) {
			s.Errorf("pod %s is refused with %q, want %q", pod, message, want)
		}
	}
}

// on fails the story unless the app's pods settle on exactly these nodes.
func (s *story) on(app string, pods int, nodes ...string) {
	s.Helper()
	allowed := map[string]bool{}
	for _, name := range nodes {
		allowed[name] = true
	}
	for name := range s.settled(app, pods).OnNodes() {
		if !allowed[name] {
			s.Errorf("a pod of %s is on %s, want it on %v", app, name, nodes)
		}
	}
}

// A cluster of two operating systems and two architectures: pods that say what they
// are built for are spread over the nodes of that platform, and wait for the first if there is none.
func TestWindowsAndLinux(t *testing.T) {
	s := begin(t, byZone)
	linux := append(s.nodes(2, 20, built("zone-a", "linux", "amd64")), s.nodes(1, 20, built("zone-b", "linux", "amd64"))...)
	windows := append(s.nodes(1, 20, built("zone-a", "windows", "amd64")), s.nodes(2, 20, built("zone-b", "windows", "amd64"))...)
	silent := s.nodes(1, 20, zone("zone-c"))

	placement := "spread=" + zoneLabel
	s.deploy("iis", 6, placement, func(spec *corev1.PodSpec) { spec.OS = &corev1.PodOS{Name: corev1.Windows} })
	s.deploy("nginx", 6, placement, func(spec *corev1.PodSpec) { spec.OS = &corev1.PodOS{Name: corev1.Linux} })
	s.deploy("any", 6, placement)
	s.pod("arm", with(s.template("arm", placement), platformsAnnotation, "linux/aarch64"))
	s.pod("two", with(s.template("two", placement), platformsAnnotation, "linux/arm64, windows/x86_64"))
	s.on("iis", 6, windows...)
	s.counts(s.settled("iis", 6), 0, 3, 3, 0)
	s.on("nginx", 6, linux...)
	s.exactly(s.settled("any", 6), 0, map[string]int{"zone-a": 2, "zone-b": 2, "zone-c": 2})
	s.on("two", 1, windows...)
	s.says("arm", "7 node(s) didn't match the pod's platform")

	// The silent node says what it is.
	s.relabel(silent[0], corev1.LabelOSStable, "linux")
	s.relabel(silent[0], corev1.LabelArchStable, "arm64")
	s.on("arm", 1, silent[0])
}

// Docker's constraints: where they do not hold no pod goes, and a label later one does.
func TestConstraints(t *testing.T) {
	s := begin(t, byZone)
	workers := s.nodes(2, 20, zone("zone-a"))
	manager := s.nodes(1, 20, map[string]string{zoneLabel: "zone-b", "node-role.kubernetes.io/control-plane": ""})
	s.pod("worker", with(s.template("worker", ""), constraintsAnnotation, "node.role == worker, node.hostname != "+strings.ToUpper(workers[0])))
	s.pod("manager", with(s.template("manager", ""), constraintsAnnotation, "node.role==manager,node.labels."+zoneLabel+"==ZONE-B"))
	s.pod("ssd", with(s.template("ssd", ""), constraintsAnnotation, "node.role == worker, engine.labels.disk == ssd"))
	s.on("worker", 1, workers[1])
	s.on("manager", 1, manager...)
	s.says("ssd", "3 node(s) didn't match the pod's constraints")
	s.relabel(workers[0], "disk", "ssd")
	s.on("ssd", 1, workers[0])

	// The address is the one that the node reports; a range without it is none of its.
	node, err := s.client.CoreV1().Nodes().Get(s.ctx, workers[0], metav1.GetOptions{})
	s.must(err, "reading node "+workers[0])
	address := ""
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			address = a.Address
		}
	}
	s.pod("inside", with(s.template("inside", ""), constraintsAnnotation, "node.ip == "+address))
	s.pod("outside", with(s.template("outside", ""), constraintsAnnotation, "node.ip == 203.0.113.0/24"))
	s.settled("inside", 1)
	s.says("outside", "3 node(s) didn't match the pod's constraints")
}

// What cannot be read keeps a pod pending, where SwarmKit would place it anywhere.
func TestMalformedConstraint(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(1, 20, zone("zone-a"))
	s.pod("typo", with(s.template("typo", ""), constraintsAnnotation, "node.role = worker"))
	s.pod("variant", with(s.template("variant", ""), platformsAnnotation, "linux/arm/v7"))
	s.says("typo", `annotation espalier.dev/constraints: constraint 1 "node.role = worker": no operator in "node.role = worker": use KEY == VALUE or KEY != VALUE`)
	s.says("variant", `annotation espalier.dev/platforms: platform 1 "linux/arm/v7": third part "v7": a node does not tell its variant; use OS/ARCH`)
	mend := fmt.Sprintf(`{"metadata":{"annotations":{%q:"node.role == worker"}}}`, constraintsAnnotation)
	_, err := s.client.CoreV1().Pods(s.ns).Patch(s.ctx, "typo", types.StrategicMergePatchType, []byte(mend), metav1.PatchOptions{})
	s.must(err, "mending the annotation")
	s.settled("typo", 1)
}
