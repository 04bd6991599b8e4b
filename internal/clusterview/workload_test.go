// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
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
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want clusterview.Identity
	}{
		{"ReplicaSet of a Deployment", plugintest.Pod(st.MakePod().Name("p").Label("pod-template-hash", "1"), web),
			clusterview.Identity{Workload: named("Deployment.apps", "web"), Revision: "1"}},
		{"ReplicaSet of a custom owner", plugintest.Pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet roll-1 roll-1-uid"),
			clusterview.Identity{Workload: named("Rollout.argoproj.io", "roll"), Revision: "roll-1-uid"}},
		{"ReplicaSet alone", plugintest.Pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet alone alone-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.apps", "alone"), Revision: "alone-uid"}},
		{"an owner of the ReplicaSet that does not control it", plugintest.Pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet adopted adopted-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.apps", "adopted"), Revision: "adopted-uid"}},
		{"unknown ReplicaSet", plugintest.Pod(st.MakePod().Name("p").Label("pod-template-hash", "1"), "apps/v1 ReplicaSet new-1 new-1-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.apps", "new-1"), Revision: "1", Provisional: true}},
		{"another ReplicaSet of the same name", plugintest.Pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet web-1 other-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.apps", "web-1"), Revision: "other-uid", Provisional: true}},
		{"a ReplicaSet that is not of apps", plugintest.Pod(st.MakePod().Name("p"), "example.com/v1 ReplicaSet web-1 web-1-uid"),
			clusterview.Identity{Workload: named("ReplicaSet.example.com", "web-1"), Revision: "web-1-uid"}},
		{"StatefulSet", plugintest.Pod(st.MakePod().Name("db-0").Label("controller-revision-hash", "db-7"), "apps/v1 StatefulSet db u"),
			clusterview.Identity{Workload: named("StatefulSet.apps", "db"), Revision: "db-7"}},
		{"Job", plugintest.Pod(st.MakePod().Name("p"), "batch/v1 Job once job-uid"),
			clusterview.Identity{Workload: named("Job.batch", "once"), Revision: "job-uid"}},
		{"ReplicationController", plugintest.Pod(st.MakePod().Name("p"), "v1 ReplicationController rc rc-uid"),
			clusterview.Identity{Workload: named("ReplicationController", "rc"), Revision: "rc-uid"}},
		{"custom controller", plugintest.Pod(st.MakePod().Name("p"), "ray.io/v1 RayCluster ray ray-uid"),
			clusterview.Identity{Workload: named("RayCluster.ray.io", "ray"), Revision: "ray-uid"}},
		{"an upgraded API is the same owner", plugintest.Pod(st.MakePod().Name("p"), "ray.io/v2 RayCluster ray ray-uid"),
			clusterview.Identity{Workload: named("RayCluster.ray.io", "ray"), Revision: "ray-uid"}},
		{"DaemonSet", plugintest.Pod(st.MakePod().Name("p").Label("controller-revision-hash", "ds-1"), "apps/v1 DaemonSet ds ds-uid"),
			clusterview.Identity{Workload: named("DaemonSet.apps", "ds"), Revision: "ds-1", Preassigned: true}},
		{"static pod", plugintest.Pod(st.MakePod().Name("etcd-n1"), "v1 Node n1 n1-uid"),
			clusterview.Identity{Workload: named("Node", "n1"), Revision: "n1-uid", Preassigned: true}},
		{"label over owner", plugintest.Pod(st.MakePod().Name("p").Label("pod-template-hash", "1").Label(clusterview.WorkloadLabel, "shop"), web),
			clusterview.Identity{Workload: named(clusterview.KindLabel, "shop"), Owner: "Deployment.apps/web", Revision: "1"}},
		{"pods of several owners without a hash are one revision", plugintest.Pod(st.MakePod().Name("p").Label(clusterview.WorkloadLabel, "shop"), "batch/v1 Job once job-uid"),
			clusterview.Identity{Workload: named(clusterview.KindLabel, "shop")}},
		{"label over both pod groups", plugintest.Pod(st.MakePod().Name("p").Label(podgroupv1alpha1.PodGroupLabel, "g").PodGroupName("h").Label(clusterview.WorkloadLabel, "shop")),
			clusterview.Identity{Workload: named(clusterview.KindLabel, "shop")}},
		{"a labelled pod of a DaemonSet stays preassigned", plugintest.Pod(st.MakePod().Name("p").Label(clusterview.WorkloadLabel, "shop"), "apps/v1 DaemonSet ds ds-uid"),
			clusterview.Identity{Workload: named(clusterview.KindLabel, "shop"), Preassigned: true}},
		{"an empty label says nothing", plugintest.Pod(st.MakePod().Name("p").Label(clusterview.WorkloadLabel, "")),
			clusterview.Identity{Workload: named(clusterview.KindPod, "p")}},
		{"PodGroup of scheduler-plugins over owner", plugintest.Pod(st.MakePod().Name("p").Label(podgroupv1alpha1.PodGroupLabel, "g"), "batch/v1 Job once job-uid"),
			clusterview.Identity{Workload: named(clusterview.KindPodGroup, "g")}},
		{"the group's label over the group's field", plugintest.Pod(st.MakePod().Name("p").Label(podgroupv1alpha1.PodGroupLabel, "g").PodGroupName("h")),
			clusterview.Identity{Workload: named(clusterview.KindPodGroup, "g")}},
		{"spec.schedulingGroup over owner", plugintest.Pod(st.MakePod().Name("p").PodGroupName("h"), "batch/v1 Job once job-uid"),
			clusterview.Identity{Workload: named(clusterview.KindSchedulingGroup, "h")}},
		{"bare pod", plugintest.Pod(st.MakePod().Name("p")),
			clusterview.Identity{Workload: named(clusterview.KindPod, "p")}},
		{"the template's hash over the controller's", plugintest.Pod(st.MakePod().Name("p").Label("pod-template-hash", "1").Label("controller-revision-hash", "2")),
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
	known := plugintest.NewReplicaSets()
	identifier := known.Identifier()
	p := plugintest.Pod(st.MakePod().Name("p"), "apps/v1 ReplicaSet web-1 web-1-uid")
	if id := identifier.Identify(p); !id.Provisional {
		t.Fatalf("before its ReplicaSet is known, a pod is %+v", id)
	}
	known.Add(plugintest.ReplicaSet("web-1", "web-1-uid", plugintest.Owner("apps/v1 Deployment web web-uid")))
	id := identifier.Identify(p)
	if id.Provisional || id.Workload.String() != "ns/Deployment.apps/web" {
		t.Errorf("once its ReplicaSet is known, a pod is %+v", id)
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
