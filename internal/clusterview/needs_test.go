// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestNeeds(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := st.MakePod().Namespace("ns").Name("p").UID("p").Container("image").
			NodeSelector(map[string]string{"disk": "ssd"}).NodeAffinityIn("zone", []string{"a"}, st.NodeSelectorTypeMatchExpressions).
			Annotation(ConstraintsAnnotation, "node.role==worker").Obj()
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
		change(p)
		return p
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		same   bool
	}{
		"nothing": {func(*corev1.Pod) {}, true},
		"what differs from pod to pod": {func(p *corev1.Pod) {
			p.Name, p.UID, p.Spec.Hostname = "q", "q", "q-1"
			p.Labels = map[string]string{"apps.kubernetes.io/pod-index": "1"}
			p.Annotations["batch.kubernetes.io/job-completion-index"] = "1"
			p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-x"}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-x"}}
		}, true},
		"the spelling of a quantity": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1000m")
		}, true},
		"preferences": {func(p *corev1.Pod) {
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1}}
		}, true},
		"a request": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}, false},
		"a pod's own resources": {func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
		}, false},
		"overhead": {func(p *corev1.Pod) {
			p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
		}, false},
		"a sidecar": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		}, false},
		"a host port":    {func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostPort = 81 }, false},
		"host network":   {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, false},
		"a selector":     {func(p *corev1.Pod) { p.Spec.NodeSelector["disk"] = "hdd" }, false},
		"an affinity":    {func(p *corev1.Pod) { p.Spec.Affinity = nil }, false},
		"a toleration":   {func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "x"}} }, false},
		"a system":       {func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, false},
		"a node":         {func(p *corev1.Pod) { p.Spec.NodeName = "n" }, false},
		"constraints":    {func(p *corev1.Pod) { p.Annotations[ConstraintsAnnotation] = "node.role==manager" }, false},
		"platforms":      {func(p *corev1.Pod) { p.Annotations[PlatformsAnnotation] = "linux" }, false},
		"no annotations": {func(p *corev1.Pod) { p.Annotations = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			one, err := NeedsOf(pod(func(*corev1.Pod) {}))
			if err != nil || one == "" {
				t.Fatalf("got %q, %v", one, err)
			}
			other, err := NeedsOf(pod(tc.change))
			if err != nil || (one == other) != tc.same {
				t.Errorf("got %q, %v beside %q, want the same: %t", other, err, one, tc.same)
			}
		})
	}
}

// What two plugins add tells pods apart, whichever of them is asked first in a profile.
func TestAddedNeeds(t *testing.T) {
	added := func(texts ...string) Needs {
		state := framework.NewCycleState()
		for plugin, text := range texts {
			if text != "" {
				AddNeeds(state, fmt.Sprint("plugin", plugin), text)
			}
		}
		return AddedNeeds(state.Clone())
	}
	if got := added(); got != "" {
		t.Errorf("nobody adds anything, and there is %q", got)
	}
	seen := make(map[Needs][]string)
	for _, texts := range [][]string{{"a"}, {"b"}, {"", "a"}, {"a", "a"}, {"a", "b"}, {"b", "a"}} {
		is := added(texts...)
		if other, known := seen[is]; known {
			t.Errorf("%q and %q are the same needs", texts, other)
		}
		seen[is] = texts
	}
}

// An affinity that requires nothing is none to a filter, and a hundred keys are written in one order.
func TestEqualNeeds(t *testing.T) {
	needs := func(change func(*corev1.Pod)) Needs {
		pod := st.MakePod().Namespace("ns").Name("p").Annotation(ConstraintsAnnotation, "node.role==worker").Annotation(PlatformsAnnotation, "linux").Obj()
		pod.Spec.NodeSelector = make(map[string]string)
		for i := range 100 {
			pod.Spec.NodeSelector[fmt.Sprint("key-", i)] = "v"
		}
		change(pod)
		is, err := NeedsOf(pod)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	want := needs(func(*corev1.Pod) {})
	for name, change := range map[string]func(*corev1.Pod){
		"once more":           func(*corev1.Pod) {},
		"an affinity":         func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{} },
		"one for nodes":       func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} },
		"one that prefers":    func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}} },
		"another annotation":  func(p *corev1.Pod) { p.Annotations["a"] = "b" },
		"requests of nothing": func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{} },
	} {
		if got := needs(change); got != want {
			t.Errorf("%s: the needs are others", name)
		}
	}
}

// What is remembered by needs must not be looked up by none.
func TestNoNeedsAreSomeNeeds(t *testing.T) {
	if needs, err := NeedsOf(&corev1.Pod{}); err != nil || needs == "" {
		t.Errorf("got %q, %v", needs, err)
	}
}

func BenchmarkNeeds(b *testing.B) {
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").NodeSelector(map[string]string{"disk": "ssd"}).
		Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "10m", corev1.ResourceMemory: "16Mi"}).Obj()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NeedsOf(pod); err != nil {
			b.Fatal(err)
		}
	}
}

func TestPrefers(t *testing.T) {
	pod := func() *st.PodWrapper { return st.MakePod().Namespace("ns").Name("p") }
	preferring := pod().NodeAffinity(&corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}},
	})
	for name, tc := range map[string]struct {
		pod  *st.PodWrapper
		want bool
	}{
		"nothing":              {pod(), false},
		"required node":        {pod().NodeAffinityIn("zone", []string{"a"}, st.NodeSelectorTypeMatchExpressions), false},
		"required neighbour":   {pod().PodAffinityExists("app", "zone", st.PodAffinityWithRequiredReq), false},
		"required loneliness":  {pod().PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithRequiredReq), false},
		"preferred node":       {preferring, true},
		"preferred neighbour":  {pod().PodAffinityExists("app", "zone", st.PodAffinityWithPreferredReq), true},
		"preferred loneliness": {pod().PodAntiAffinityExists("app", "zone", st.PodAntiAffinityWithPreferredReq), true},
	} {
		if got := Prefers(tc.pod.Obj()); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
