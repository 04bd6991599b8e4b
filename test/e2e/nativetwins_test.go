// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// The admission policy says in a pod's required affinity what autoscalers do not read in its annotations.
func TestNativeTwins(t *testing.T) {
	s := begin(t, spread.core())
	rig.Since(t, world.client, rig.MutatingSince, "policies that change objects")
	s.admit("admission/native-twins.yaml")
	set := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "1", Controller: new(true)}}
	owned, workload := set, ""
	twins := func(annotations map[string]string, change ...func(*corev1.PodSpec)) string {
		s.Helper()
		template := s.template("tried", "", change...)
		template.Name = "tried"
		template.Annotations = make(map[string]string)
		for name, value := range annotations {
			template.Annotations["espalier.dev/"+name] = value
		}
		template.OwnerReferences = owned
		template.Labels = map[string]string{"app": "tried", "apps.kubernetes.io/pod-index": "3"}
		if workload != "" {
			template.Labels["espalier.dev/workload"] = workload
		}
		pod, err := s.client.CoreV1().Pods(s.ns).Create(s.ctx, &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		s.must(err, "creating a pod")
		return affinityOf(pod.Spec.Affinity)
	}
	s.until("the admission policy to be in force", func() error {
		return errorIf(twins(map[string]string{"constraints": "node.labels.disk==ssd"}) == "", "nothing is added")
	})
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"nothing":       {map[string]string{"placement": "spread=zone"}, ""},
		"labels":        {map[string]string{"constraints": " node.labels.disk == ssd,engine.labels.example.com/Rack != r-1 "}, "disk In ssd, example.com/Rack NotIn r-1"},
		"a manager":     {map[string]string{"constraints": "node.role==manager"}, "node-role.kubernetes.io/control-plane Exists"},
		"a worker":      {map[string]string{"constraints": "node.role == Worker"}, "node-role.kubernetes.io/control-plane DoesNotExist"},
		"no manager":    {map[string]string{"constraints": "node.role!=manager"}, "node-role.kubernetes.io/control-plane DoesNotExist"},
		"host and arch": {map[string]string{"constraints": "node.hostname==h1,node.platform.arch!=x86_64"}, "kubernetes.io/hostname In h1, kubernetes.io/arch NotIn amd64"},
		"no twin":       {map[string]string{"constraints": "node.id==x,node.ip==10.0.0.0/8,node.name==n,node.labels.a==b c,rubbish"}, ""},
		"platforms":     {map[string]string{"platforms": "linux/amd64, Linux/aarch64"}, "kubernetes.io/os In linux, kubernetes.io/arch In amd64 arm64"},
		"systems":       {map[string]string{"platforms": "linux,windows"}, "kubernetes.io/os In linux windows"},
		"of no product": {map[string]string{"platforms": "linux/amd64,windows/arm64"}, ""},
		"of no system":  {map[string]string{"platforms": "linux,linux/arm64"}, ""},
		"excluding": {
			map[string]string{"placement": "spread=node.labels.rack;nodesWithoutKey=exclude,pack=x.y/row; nodesWithoutKey = Exclude ;weight.a=2,spread=zone"},
			"rack Exists, x.y/row Exists",
		},
		"one on a host":  {map[string]string{"domain-limits": "example.com/rack=2, kubernetes.io/hostname = 01"}, "apart over kubernetes.io/hostname from map[app:tried]"},
		"two on a host":  {map[string]string{"domain-limits": "kubernetes.io/hostname=2"}, ""},
		"ten on a host":  {map[string]string{"domain-limits": "kubernetes.io/hostname=10"}, ""},
		"no label":       {map[string]string{"platforms": "linux/" + strings.Repeat("a", 64), "constraints": "node.labels." + strings.Repeat("a.", 130) + "b/c == d"}, ""},
		"what is no use": {map[string]string{"placement": "nonsense;;=", "platforms": ",", "constraints": "==", "domain-limits": "="}, ""},
	} {
		if got := twins(tc.annotations); got != tc.want {
			s.Errorf("%s: got  %q\nwant %q", name, got, tc.want)
		}
	}

	// The controller of a DaemonSet chooses the node: nothing but the constraints and the platform keeps such a pod off it.
	owned = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "1", Controller: new(true)}}
	everything := map[string]string{"constraints": "node.labels.disk==ssd", "placement": "spread=rack;nodesWithoutKey=Exclude", "domain-limits": "kubernetes.io/hostname=1"}
	if got, want := twins(everything), "disk In ssd"; got != want {
		s.Errorf("of a DaemonSet: got %q, want %q", got, want)
	}
	// A limit counts nothing beside a pod alone, and the pods of several owners where a label puts them together.
	limited := map[string]string{"domain-limits": "kubernetes.io/hostname=1"}
	if owned = nil; twins(limited) != "" {
		s.Errorf("of a pod alone: got %q", twins(limited))
	}
	owned, workload = set, "named"
	if twins(limited) != "" {
		s.Errorf("of several owners: got %q", twins(limited))
	}
	workload = ""

	// A term without anything selects no node, and goes on to do so.
	nothing := func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}}}
	}
	if got := twins(everything, nothing); !strings.HasPrefix(got, "; ") {
		s.Errorf("a pod that fits nowhere by itself: got %q", got)
	}

	// What the pod requires itself stays, and each of its alternatives gets the twins.
	affine := func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "In", Values: []string{"b"}}}},
					{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"n"}}}},
				}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
					Weight: 3, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "p", Operator: "Exists"}}},
				}},
			},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: zoneLabel, LabelSelector: selects("other")},
			}},
		}
	}
	got := twins(map[string]string{"constraints": "node.labels.disk==ssd", "domain-limits": "kubernetes.io/hostname=1"}, affine)
	want := "a In b, disk In ssd or metadata.name In n, disk In ssd; 1 preferred; " +
		"apart over " + zoneLabel + " from map[app:other]; apart over kubernetes.io/hostname from map[app:tried]"
	if got != want {
		s.Errorf("got  %q\nwant %q", got, want)
	}
}

// affinityOf is the affinity of a pod in one line.
func affinityOf(affinity *corev1.Affinity) string {
	if affinity == nil {
		return ""
	}
	var parts []string
	if node := affinity.NodeAffinity; node != nil && node.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		var terms []string
		for _, term := range node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			var all []string
			for _, r := range append(term.MatchFields, term.MatchExpressions...) {
				all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Key, r.Operator, strings.Join(r.Values, " "))))
			}
			terms = append(terms, strings.Join(all, ", "))
		}
		parts = append(parts, strings.Join(terms, " or "))
		if n := len(node.PreferredDuringSchedulingIgnoredDuringExecution); n > 0 {
			parts = append(parts, fmt.Sprintf("%d preferred", n))
		}
	}
	if pods := affinity.PodAntiAffinity; pods != nil {
		for _, term := range pods.RequiredDuringSchedulingIgnoredDuringExecution {
			parts = append(parts, fmt.Sprintf("apart over %s from %v", term.TopologyKey, term.LabelSelector.MatchLabels))
		}
	}
	return strings.Join(parts, "; ")
}
