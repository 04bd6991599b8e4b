// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	podgroupv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/espalier-scheduler/espalier/pkg/clusterview"
)

// replicaSets is what a lister of ReplicaSets knows, and how often it was asked.
type replicaSets struct {
	indexer cache.Indexer
	asked   int
	// before, if set, is told of every ask before it is answered.
	before func(asked int)
	// told are those who watch the ReplicaSets.
	told []*clusterview.Identifier
}

func newReplicaSets(known ...*appsv1.ReplicaSet) *replicaSets {
	r := &replicaSets{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	for _, rs := range known {
		r.add(rs)
	}
	return r
}

func (r *replicaSets) add(rs *appsv1.ReplicaSet) {
	_ = r.indexer.Add(rs)
	for _, i := range r.told {
		i.ReplicaSetAdded()
	}
}

// identifier counts, for one ask of a ReplicaSet is one pod identified.
func (r *replicaSets) identifier() *clusterview.Identifier {
	i := clusterview.NewIdentifier(counting{appslisters.NewReplicaSetLister(r.indexer), r})
	r.told = append(r.told, i)
	return i
}

type counting struct {
	appslisters.ReplicaSetLister
	of *replicaSets
}

func (c counting) ReplicaSets(namespace string) appslisters.ReplicaSetNamespaceLister {
	c.of.asked++
	if c.of.before != nil {
		c.of.before(c.of.asked)
	}
	return c.ReplicaSetLister.ReplicaSets(namespace)
}

// owner is a controller in the notation "apps/v1 ReplicaSet web-1 uid-1".
func owner(text string) metav1.OwnerReference {
	f := strings.Fields(text)
	return metav1.OwnerReference{APIVersion: f[0], Kind: f[1], Name: f[2], UID: types.UID(f[3]), Controller: new(true)}
}

func replicaSet(name, uid string, owners ...metav1.OwnerReference) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), OwnerReferences: owners}}
}

// pod is p in namespace ns, with owners.
func pod(p *st.PodWrapper, owners ...string) *corev1.Pod {
	p.Namespace("ns")
	for _, o := range owners {
		p.OwnerReferences = append(p.OwnerReferences, owner(o))
	}
	return p.Obj()
}

func TestIdentify(t *testing.T) {
	identifier := newReplicaSets(
		replicaSet("web-1", "web-1-uid", owner("apps/v1 Deployment web web-uid")),
		replicaSet("roll-1", "roll-1-uid", owner("argoproj.io/v1alpha1 Rollout roll roll-uid")),
		replicaSet("alone", "alone-uid"),
		replicaSet("adopted", "adopted-uid", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "no-controller", UID: "u"}),
	).identifier()
	named := func(kind, name string) clusterview.Workload {
		return clusterview.Workload{Namespace: "ns", Kind: kind, Name: name}
	}
	const web = "apps/v1 ReplicaSet web-1 web-1-uid"
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want clusterview.Identity
	}{
		{"ReplicaSet of a Deployment", pod(st.MakePod().Name("p").Label("pod-template-hash", "1"), web),
			clusterview.Identity{Workload: named("Deployment.apps", "web"), Revision: "1"}},
		{"ReplicaSet of a custom owner", pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet roll-1 roll-1-uid"),
			clusterview.Identity{Workload: named("Rollout.argoproj.io", "roll"), Revision: "roll-1-uid"}},
		{"ReplicaSet alone", pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet alone alone-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.apps", "alone"), Revision: "alone-uid"}},
		{"an owner of the ReplicaSet that does not control it", pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet adopted adopted-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.apps", "adopted"), Revision: "adopted-uid"}},
		{"unknown ReplicaSet", pod(st.MakePod().Name("p").Label("pod-template-hash", "1"), "apps/v1 ReplicaSet new-1 new-1-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.apps", "new-1"), Revision: "1", Provisional: true}},
		{"another ReplicaSet of the same name", pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet web-1 other-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.apps", "web-1"), Revision: "other-uid", Provisional: true}},
		{"a ReplicaSet that is not of apps", pod(st.MakePod().Name("p"), "example.com/v1 ReplicaSet web-1 web-1-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.example.com", "web-1"), Revision: "web-1-uid"}},
		{"StatefulSet", pod(st.MakePod().Name("db-0").Label("controller-revision-hash", "db-7"), "apps/v1 StatefulSet db u"),
			clusterview.Identity{Workload: named("StatefulSet.apps", "db"), Revision: "db-7"}},
		{"Job", pod(st.MakePod().Name("p"), "batch/v1 Job once job-uid"),
			clusterview.Identity{Workload: named("Job.batch", "once"), Revision: "job-uid"}},
		{"ReplicationController", pod(st.MakePod().Name("p"), "v1 ReplicationController rc rc-uid"),
			clusterview.Identity{Workload: named("ReplicationController", "rc"), Revision: "rc-uid"}},
		{"custom controller", pod(st.MakePod().Name("p"), "ray.io/v1 RayCluster ray ray-uid"),
			clusterview.Identity{Workload: named("RayCluster.ray.io", "ray"), Revision: "ray-uid"}},
		{"an upgraded API is the same owner", pod(st.MakePod().Name("p"), "ray.io/v2 RayCluster ray ray-uid"),
			clusterview.Identity{Workload: named("RayCluster.ray.io", "ray"), Revision: "ray-uid"}},
		{"DaemonSet", pod(st.MakePod().Name("p").Label("controller-revision-hash", "ds-1"), "apps/v1 DaemonSet ds ds-uid"),
			clusterview.Identity{Workload: named("DaemonSet.apps", "ds"), Revision: "ds-1", Preassigned: true}},
		{"static pod", pod(st.MakePod().Name("etcd-n1"), "v1 Node n1 n1-uid"),
			clusterview.Identity{Workload: named("Node", "n1"), Revision: "n1-uid", Preassigned: true}},
		{"label over owner", pod(st.MakePod().Name("p").Label("pod-template-hash", "1").Label(clusterview.WorkloadLabel, "shop"), web),
			clusterview.Identity{Workload: named(clusterview.KindLabel, "shop"), Owner: "Deployment.apps/web", Revision: "1"}},
		{"pods of several owners without a hash are one revision", pod(st.MakePod().Name("p").Label(clusterview.WorkloadLabel, "shop"), "batch/v1 Job once job-uid"),
			clusterview.Identity{Workload: named(clusterview.KindLabel, "shop")}},
		{"label over both pod groups", pod(st.MakePod().Name("p").Label(podgroupv1alpha1.PodGroupLabel, "g").PodGroupName("h").Label(clusterview.WorkloadLabel, "shop")),
			clusterview.Identity{Workload: named(clusterview.KindLabel, "shop")}},
		{"a labelled pod of a DaemonSet stays preassigned", pod(st.MakePod().Name("p").Label(clusterview.WorkloadLabel, "shop"), "apps/v1 DaemonSet ds ds-uid"),
			clusterview.Identity{Workload: named(clusterview.KindLabel, "shop"), Preassigned: true}},
		{"an empty label says nothing", pod(st.MakePod().Name("p").Label(clusterview.WorkloadLabel, "")),
			clusterview.Identity{Workload: named(clusterview.KindPod, "p")}},
		{"PodGroup of scheduler-plugins over owner", pod(st.MakePod().Name("p").Label(podgroupv1alpha1.PodGroupLabel, "g"), "batch/v1 Job once job-uid"),
			clusterview.Identity{Workload: named(clusterview.KindPodGroup, "g")}},
		{"the group's label over the group's field", pod(st.MakePod().Name("p").Label(podgroupv1alpha1.PodGroupLabel, "g").PodGroupName("h")),
			clusterview.Identity{Workload: named(clusterview.KindPodGroup, "g")}},
		{"spec.schedulingGroup over owner", pod(st.MakePod().Name("p").PodGroupName("h"), "batch/v1 Job once job-uid"),
			clusterview.Identity{Workload: named(clusterview.KindSchedulingGroup, "h")}},
		{"bare pod", pod(st.MakePod().Name("p")),
			clusterview.Identity{Workload: named(clusterview.KindPod, "p")}},
		{"the template's hash over the controller's", pod(st.MakePod().Name("p").Label("pod-template-hash", "1").Label("controller-revision-hash", "2")),
			clusterview.Identity{Workload: named(clusterview.KindPod, "p"), Revision: "1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := gocmp.Diff(tc.want, identifier.Identify(tc.pod)); d != "" {
				t.Error("want -, got +:\n" + d)
			}
		})
	}
}

func TestIdentifyOnceTheReplicaSetIsKnown(t *testing.T) {
	known := newReplicaSets()
	identifier := known.identifier()
	p := pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet web-1 web-1-uid")
	if id := identifier.Identify(p); !id.Provisional {
		t.Fatalf("before its ReplicaSet is known, a pod is %+v", id)
	}
	known.add(replicaSet("web-1", "web-1-uid", owner("apps/v1 Deployment web web-uid")))
	id := identifier.Identify(p)
	if id.Provisional || id.Workload.String() != "ns/Deployment.apps/web" {
		t.Errorf("once its ReplicaSet is known, a pod is %+v", id)
	}
}

func TestNamespacesAreApart(t *testing.T) {
	identifier := newReplicaSets(replicaSet("web-1", "web-1-uid", owner("apps/v1 Deployment web web-uid"))).identifier()
	p := pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet web-1 web-1-uid")
	p.Namespace = "other"
	if id := identifier.Identify(p); !id.Provisional || id.Workload.Namespace != "other" {
		t.Errorf("a pod follows the ReplicaSet of another namespace: %+v", id)
	}
}
