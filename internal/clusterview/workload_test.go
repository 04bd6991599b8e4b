// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"
	podgroupv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func TestIdentify(t *testing.T) {
	identifier := plugintest.NewReplicaSets(
		plugintest.ReplicaSet("web-1", "web-1-uid", plugintest.Owner("apps/v1 Deployment web web-uid")),
		plugintest.ReplicaSet("roll-1", "roll-1-uid", plugintest.Owner("argoproj.io/v1alpha1 Rollout roll roll-uid")),
		plugintest.ReplicaSet("alone", "alone-uid"),
		plugintest.ReplicaSet("adopted", "adopted-uid", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "no-controller", UID: "u"}),
	).Identifier()
	named := func(kind, name string) clusterview.Workload {
		return clusterview.Workload{Namespace: "ns", Kind: kind, Name: name}
	}
	const web = "apps/v1 ReplicaSet web-1 web-1-uid"
	pinned := withAffinity(term(is("n1")))
	pinned.Labels = map[string]string{clusterview.WorkloadLabel: "shop"}
	type id = clusterview.Identity
	to := func(kind, name, revision string) id { return id{Workload: named(kind, name), Revision: revision} }
	of, pod := plugintest.Pod, func() *st.PodWrapper { return st.MakePod().Name("p") }
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want id
	}{
		{"ReplicaSet of a Deployment", of(pod().Label("pod-template-hash", "1"), web), to("Deployment.apps", "web", "1")},
		{"ReplicaSet of a custom owner", of(pod(), "apps/v1 ReplicaSet roll-1 roll-1-uid"), to("Rollout.argoproj.io", "roll", "roll-1-uid")},
		{"ReplicaSet alone", of(pod(), "apps/v1 ReplicaSet alone alone-uid"), to("ReplicaSet.apps", "alone", "alone-uid")},
		{"an owner of the ReplicaSet that does not control it", of(pod(), "apps/v1 ReplicaSet adopted adopted-uid"), to("ReplicaSet.apps", "adopted", "adopted-uid")},
		{"unknown ReplicaSet", of(pod().Label("pod-template-hash", "1"), "apps/v1 ReplicaSet new-1 new-1-uid"),
			id{Workload: named("ReplicaSet.apps", "new-1"), Revision: "1", Provisional: true}},
		{"another ReplicaSet of the same name", of(pod(), "apps/v1 ReplicaSet web-1 other-uid"),
			id{Workload: named("ReplicaSet.apps", "web-1"), Revision: "other-uid", Provisional: true}},
		{"a ReplicaSet that is not of apps", of(pod(), "example.com/v1 ReplicaSet web-1 web-1-uid"), to("ReplicaSet.example.com", "web-1", "web-1-uid")},
		{"StatefulSet", of(st.MakePod().Name("db-0").Label("controller-revision-hash", "db-7"), "apps/v1 StatefulSet db u"), to("StatefulSet.apps", "db", "db-7")},
		{"Job", of(pod(), "batch/v1 Job once job-uid"), to("Job.batch", "once", "job-uid")},
		{"ReplicationController", of(pod(), "v1 ReplicationController rc rc-uid"), to("ReplicationController", "rc", "rc-uid")},
		{"custom controller", of(pod(), "ray.io/v1 RayCluster ray ray-uid"), to("RayCluster.ray.io", "ray", "ray-uid")},
		{"an upgraded API is the same owner", of(pod(), "ray.io/v2 RayCluster ray ray-uid"), to("RayCluster.ray.io", "ray", "ray-uid")},
		{"DaemonSet", of(pod().Label("controller-revision-hash", "ds-1"), "apps/v1 DaemonSet ds ds-uid"),
			id{Workload: named("DaemonSet.apps", "ds"), Revision: "ds-1", Preassigned: true}},
		{"static pod", of(st.MakePod().Name("etcd-n1"), "v1 Node n1 n1-uid"), id{Workload: named("Node", "n1"), Revision: "n1-uid", Preassigned: true}},
		{"label over owner", of(pod().Label("pod-template-hash", "1").Label(clusterview.WorkloadLabel, "shop"), web),
			id{Workload: named(clusterview.KindLabel, "shop"), Owner: "Deployment.apps/web", Revision: "1"}},
		{"pods of several owners without a hash are one revision", of(pod().Label(clusterview.WorkloadLabel, "shop"), "batch/v1 Job once job-uid"),
			to(clusterview.KindLabel, "shop", "")},
		{"label over both pod groups", of(pod().Label(podgroupv1alpha1.PodGroupLabel, "g").PodGroupName("h").Label(clusterview.WorkloadLabel, "shop")),
			to(clusterview.KindLabel, "shop", "")},
		{"a labelled pod of a DaemonSet stays preassigned", of(pod().Label(clusterview.WorkloadLabel, "shop"), "apps/v1 DaemonSet ds ds-uid"),
			id{Workload: named(clusterview.KindLabel, "shop"), Preassigned: true}},
		{"a pinned pod is one of its workload", pinned, id{Workload: named(clusterview.KindLabel, "shop"), Preassigned: true}},
		{"an empty label says nothing", of(pod().Label(clusterview.WorkloadLabel, "")), to(clusterview.KindPod, "p", "")},
		{"PodGroup of scheduler-plugins over owner", of(pod().Label(podgroupv1alpha1.PodGroupLabel, "g"), "batch/v1 Job once job-uid"),
			to(clusterview.KindPodGroup, "g", "")},
		{"the group's label over the group's field", of(pod().Label(podgroupv1alpha1.PodGroupLabel, "g").PodGroupName("h")), to(clusterview.KindPodGroup, "g", "")},
		{"spec.schedulingGroup over owner", of(pod().PodGroupName("h"), "batch/v1 Job once job-uid"), to(clusterview.KindSchedulingGroup, "h", "")},
		{"bare pod", of(pod()), to(clusterview.KindPod, "p", "")},
		{"the template's hash over the controller's", of(pod().Label("pod-template-hash", "1").Label("controller-revision-hash", "2")),
			to(clusterview.KindPod, "p", "1")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plugintest.WantEqual(t, tc.want, identifier.Identify(tc.pod))
		})
	}
}

func TestNamespacesAreApart(t *testing.T) {
	identifier := plugintest.NewReplicaSets(plugintest.ReplicaSet("web-1", "web-1-uid", plugintest.Owner("apps/v1 Deployment web web-uid"))).Identifier()
	p := plugintest.Pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet web-1 web-1-uid")
	p.Namespace = "other"
	if id := identifier.Identify(p); !id.Provisional || id.Workload.Namespace != "other" {
		t.Errorf("a pod follows the ReplicaSet of another namespace: %+v", id)
	}
}

// A thousand replicas differ in everything that is a pod's own, and are one batch all the same.
func TestAThousandReplicasAreEquivalent(t *testing.T) {
	identifier := plugintest.NewReplicaSets(plugintest.ReplicaSet("web-1", "web-1-uid", plugintest.Owner("apps/v1 Deployment web web-uid"))).Identifier()
	want := clusterview.Identity{Workload: clusterview.Workload{Namespace: "ns", Kind: "Deployment.apps", Name: "web"}, Revision: "1"}
	for i := range 1000 {
		name := fmt.Sprint("web-1-", i)
		p := plugintest.Pod(st.MakePod().Name(name).UID(name).Label("pod-template-hash", "1").Node(fmt.Sprint("n", i%7)), "apps/v1 ReplicaSet web-1 web-1-uid")
		p.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
		p.ResourceVersion = fmt.Sprint(i)
		p.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": fmt.Sprint(i)}
		p.Status.PodIP = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
		if got := identifier.Identify(p); got != want {
			t.Fatalf("replica %d is of %+v, want %+v", i, got, want)
		}
	}
}

// Services say which pods count for a pod that stands alone, and for no other.
func TestOfServices(t *testing.T) {
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, s := range []struct {
		namespace, name string
		selector        map[string]string
	}{
		{"ns", "web", map[string]string{"app": "web"}},
		{"ns", "front", map[string]string{"tier": "front"}},
		{"ns", "without-selector", nil},
		{"ns", "everything", map[string]string{}},
		{"far", "db", map[string]string{"app": "db"}},
	} {
		must(t, services.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}, Spec: corev1.ServiceSpec{Selector: s.selector}}))
	}
	pod := func(app string) *st.PodWrapper { return st.MakePod().Name("p").UID("p").Label("app", app) }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string // "" is no selector
	}{
		"one":                         {plugintest.Pod(pod("web")), "app=web"},
		"two are one":                 {plugintest.Pod(pod("web").Label("tier", "front").Label("more", "x")), "app=web,tier=front"},
		"of another namespace":        {plugintest.Pod(pod("db")), ""},
		"no labels":                   {plugintest.Pod(st.MakePod().Name("p").UID("p")), ""},
		"a pod with an owner":         {plugintest.Pod(pod("web"), "batch/v1 Job j j-uid"), ""},
		"a pod that names a workload": {plugintest.Pod(pod("web").Label(clusterview.WorkloadLabel, "w")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := clusterview.OfServices(tc.pod, corelisters.NewServiceLister(services))
			must(t, err)
			got := ""
			if s != nil {
				got = s.Workload().Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// is is a requirement of a node's name.
func is(name string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}
}

func term(fields ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: fields}
}

func withAffinity(terms ...corev1.NodeSelectorTerm) *corev1.Pod {
	p := st.MakePod().Namespace("ns").Name("p").Obj()
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
	return p
}

func TestPreassigned(t *testing.T) {
	but := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"n1"}}
	ssd := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}}
	both := ssd
	both.MatchFields = []corev1.NodeSelectorRequirement{is("n1")}
	preferred := st.MakePod().Namespace("ns").Name("p").Obj()
	preferred.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term(is("n1"))}},
	}}
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"a pod alone", plugintest.Pod(st.MakePod().Name("p")), false},
		{"a DaemonSet's", plugintest.Pod(st.MakePod().Name("p"), "apps/v1 DaemonSet ds u"), true},
		{"a static pod", plugintest.Pod(st.MakePod().Name("p"), "v1 Node n1 u"), true},
		{"a DaemonSet of another group", plugintest.Pod(st.MakePod().Name("p"), "example.com/v1 DaemonSet ds u"), false},
		{"pinned to a node", withAffinity(term(is("n1"))), true},
		{"pinned to a node twice", withAffinity(term(is("n1")), term(is("n1"))), true},
		{"pinned to a node, if it has a disk", withAffinity(both), true},
		{"pinned to a node twice in a term", withAffinity(term(is("n1"), is("n1"))), true},
		{"beside a term that no node meets", withAffinity(term(is("n1"), is("n2")), term(is("n3"))), true},
		{"two nodes", withAffinity(term(is("n1")), term(is("n2"))), false},
		{"a node, or any with a disk", withAffinity(term(is("n1")), ssd), false},
		{"no node at all", withAffinity(term(is("n1"), is("n2"))), false},
		{"any node but one", withAffinity(term(but)), false},
		{"no terms", withAffinity(), false},
		{"a node that is preferred", preferred, false},
		{"a selector of a host's label", st.MakePod().NodeSelector(map[string]string{corev1.LabelHostname: "n1"}).Obj(), false},
	} {
		if got := clusterview.Preassigned(tc.pod); got != tc.want {
			t.Errorf("%s: got %t, want %t", tc.name, got, tc.want)
		}
	}
}

// Whatever the affinity, a pod that is preassigned by it fits one node, by the affinity's own rules, and has the name of this node in it.
func TestPreassignedPodsFitOneNode(t *testing.T) {
	nodes := []string{"n1", "n2", "n3"}
	rapid.Check(t, func(t *rapid.T) {
		requirement := rapid.Custom(func(t *rapid.T) corev1.NodeSelectorRequirement { return is(rapid.SampledFrom(nodes).Draw(t, "name")) })
		terms := rapid.SliceOfN(rapid.SliceOfN(requirement, 0, 2), 0, 3).Draw(t, "terms")
		var selector []corev1.NodeSelectorTerm
		open := false
		for _, fields := range terms {
			selector = append(selector, term(fields...))
			open = open || len(fields) == 0
		}
		p := withAffinity(selector...)
		required := nodeaffinity.GetRequiredNodeAffinity(p)
		fit := 0
		for _, name := range nodes {
			if ok, err := required.Match(st.MakeNode().Name(name).Obj()); err == nil && ok {
				fit++
			}
		}
		// A term without requirements matches nothing, and the in-tree plugin does not
		// let the framework leave out nodes for the sake of the others.
		if got, want := clusterview.Preassigned(p), fit == 1 && !open; got != want {
			t.Errorf("fits %d nodes, and Preassigned is %t: %+v", fit, got, terms)
		}
	})
}
