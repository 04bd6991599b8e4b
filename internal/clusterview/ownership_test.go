// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// ofSet is a pod of a ReplicaSet of a Deployment's revision.
func ofSet(deployment, hash string, change func(*corev1.Pod)) *corev1.Pod {
	controller := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: deployment + "-" + hash + "-x", Labels: map[string]string{"app": deployment, "pod-template-hash": hash},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-" + hash, Controller: &controller}},
	}}
	if change != nil {
		change(pod)
	}
	return pod
}

func TestOwnershipKey(t *testing.T) {
	softly := func(selector *metav1.LabelSelector, keys ...string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
				{TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"hard": "yes"}}},
				{TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector, MatchLabelKeys: keys},
			}
		}
	}
	tier := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}
	hashed := func(hash string) *metav1.LabelSelector {
		s := tier.DeepCopy()
		s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "pod-template-hash", Operator: metav1.LabelSelectorOpIn, Values: []string{hash}}}
		return s
	}
	of := func(kind, name string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind, pod.OwnerReferences[0].Name = "apps/v1", kind, name
			delete(pod.Labels, "pod-template-hash")
		}
	}
	for name, tc := range map[string]struct {
		a, b *corev1.Pod
		same bool
		want string // of a
	}{
		"revisions of one Deployment": {ofSet("web", "6c8d", nil), ofSet("web", "77f9", nil), true, "shop/ReplicaSet.apps/web"},
		"two Deployments":             {ofSet("web", "6c8d", nil), ofSet("api", "6c8d", nil), false, "shop/ReplicaSet.apps/web"},
		"a ReplicaSet by itself": {
			ofSet("web", "6c8d", func(p *corev1.Pod) { delete(p.Labels, "pod-template-hash") }), ofSet("web", "6c8d", nil), false, "shop/ReplicaSet.apps/web-6c8d",
		},
		"a name that does not end with the hash": {
			ofSet("web", "6c8d", func(p *corev1.Pod) { p.Labels["pod-template-hash"] = "0000" }), ofSet("web", "6c8d", nil), false, "shop/ReplicaSet.apps/web-6c8d",
		},
		"one selector over two Deployments": {ofSet("web", "6c8d", softly(tier)), ofSet("api", "77f9", softly(tier)), true, "shop/selector/tier=front"},
		"a selector that has the revision": {
			ofSet("web", "6c8d", softly(hashed("6c8d"), "pod-template-hash")), ofSet("web", "77f9", softly(hashed("77f9"), "pod-template-hash")), true, "shop/selector/tier=front",
		},
		"a selector that selects nothing, and none": {ofSet("web", "6c8d", softly(nil)), ofSet("web", "6c8d", nil), true, "shop/ReplicaSet.apps/web"},
		"a selector that cannot be read": {
			ofSet("web", "6c8d", softly(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}})), ofSet("web", "6c8d", nil), true, "shop/ReplicaSet.apps/web",
		},
		"a workload that is named": {
			ofSet("web", "6c8d", func(p *corev1.Pod) { p.Labels[WorkloadLabel] = "all" }), ofSet("api", "77f9", func(p *corev1.Pod) { p.Labels[WorkloadLabel] = "all"; softly(tier)(p) }), true, "shop/label/all",
		},
		"a StatefulSet": {ofSet("web", "x", of("StatefulSet", "db")), ofSet("api", "x", of("StatefulSet", "db")), true, "shop/StatefulSet.apps/db"},
		"pods alone": {
			ofSet("web", "x", func(p *corev1.Pod) { p.OwnerReferences = nil }), ofSet("api", "x", func(p *corev1.Pod) { p.OwnerReferences = nil }), false, "shop/pod/web-x-x",
		},
		"other namespaces": {ofSet("web", "6c8d", nil), ofSet("web", "6c8d", func(p *corev1.Pod) { p.Namespace = "test" }), false, "shop/ReplicaSet.apps/web"},
	} {
		a, b := OwnershipKey(tc.a), OwnershipKey(tc.b)
		if a != tc.want || (a == b) != tc.same {
			t.Errorf("%s: the keys are %q and %q, want %q and the same: %t", name, a, b, tc.want, tc.same)
		}
	}
}

func TestChanges(t *testing.T) {
	var c Changes
	if got, now, known := c.Since(0); len(got) > 0 || now != 0 || !known {
		t.Errorf("of nothing there is %v at %d, known: %t", got, now, known)
	}
	c.Note("a")
	before := c.Now()
	c.Note("b")
	c.Note("a")
	c.Note("b")
	got, now, known := c.Since(before)
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b"}) || now != 4 || !known {
		t.Errorf("since the first there is %v at %d, known: %t", got, now, known)
	}
	if got, _, _ := c.Since(3); !slices.Equal(got, []string{"b"}) {
		t.Errorf("since the third there is %v", got)
	}
	for i := range maxChanged {
		c.Note(strconv.Itoa(i))
	}
	if _, _, known := c.Since(now); known {
		t.Error("what was forgotten is known")
	}
	if got, _, known := c.Since(c.Now() - 1); len(got) != 1 || !known {
		t.Errorf("of the last there is %v, known: %t", got, known)
	}
}

// Pods with the same needs get the same answers of filters: what these look at must tell pods apart, and what differs from pod to pod must not. An affinity
// that requires nothing is none to a filter, and a hundred keys are written in one order.
func TestNeeds(t *testing.T) {
	needs := func(change func(*corev1.Pod)) Needs {
		t.Helper()
		p := st.MakePod().Namespace("ns").Name("p").UID("p").Container("image").
			NodeSelector(map[string]string{"disk": "ssd"}).NodeAffinityIn("zone", []string{"a"}, st.NodeSelectorTypeMatchExpressions).
			Annotation(ConstraintsAnnotation, "node.role==worker").Annotation(PlatformsAnnotation, "linux").Obj()
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
		for i := range 100 {
			p.Spec.NodeSelector[fmt.Sprint("key-", i)] = "v"
		}
		change(p)
		is, err := NeedsOf(p)
		if err != nil || is == "" { // what is remembered by needs must not be looked up by none
			t.Fatalf("got %q, %v", is, err)
		}
		return is
	}
	two := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	same := map[string]func(*corev1.Pod){
		"nothing": func(*corev1.Pod) {},
		"what differs from pod to pod": func(p *corev1.Pod) {
			p.Name, p.UID, p.Spec.Hostname = "q", "q", "q-1"
			p.Labels = map[string]string{"apps.kubernetes.io/pod-index": "1"}
			p.Annotations["batch.kubernetes.io/job-completion-index"] = "1"
			p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-x"}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-x"}}
		},
		"the spelling of a quantity": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1000m")
		},
		"preferences": func(p *corev1.Pod) {
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1}}
		},
		"one that prefers pods": func(p *corev1.Pod) { p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{} },
		"requests of nothing":   func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{} },
	}
	want := needs(same["nothing"])
	for name, change := range same {
		if got := needs(change); got != want {
			t.Errorf("%s: the needs are others", name)
		}
	}
	none := needs(func(p *corev1.Pod) { p.Spec.Affinity = nil })
	for name, affinity := range map[string]*corev1.Affinity{"an empty one": {}, "an empty one for nodes": {NodeAffinity: &corev1.NodeAffinity{}}} {
		if got := needs(func(p *corev1.Pod) { p.Spec.Affinity = affinity }); got != none || got == want {
			t.Errorf("%s: it is not as if there were no affinity, or the same as with one", name)
		}
	}
	for name, change := range map[string]func(*corev1.Pod){
		"a request":             func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = two },
		"a pod's own resources": func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: two} },
		"overhead":              func(p *corev1.Pod) { p.Spec.Overhead = two },
		"a sidecar": func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		},
		"a host port":    func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostPort = 81 },
		"host network":   func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"a selector":     func(p *corev1.Pod) { p.Spec.NodeSelector["disk"] = "hdd" },
		"a toleration":   func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "x"}} },
		"a system":       func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
		"a node":         func(p *corev1.Pod) { p.Spec.NodeName = "n" },
		"constraints":    func(p *corev1.Pod) { p.Annotations[ConstraintsAnnotation] = "node.role==manager" },
		"platforms":      func(p *corev1.Pod) { p.Annotations[PlatformsAnnotation] = "windows" },
		"no annotations": func(p *corev1.Pod) { p.Annotations = nil },
	} {
		if got := needs(change); got == want {
			t.Errorf("%s: the needs are the same", name)
		}
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

func TestPrefers(t *testing.T) {
	pod := func() *st.PodWrapper { return st.MakePod().Namespace("ns").Name("p") }
	preferring := pod().NodeAffinity(&corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}})
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
