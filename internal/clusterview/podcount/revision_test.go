// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

// revision is the pods of web's revision 2 by node.
func (v *view) revision() map[string]int64 {
	v.refresh()
	counts := make(map[string]int64)
	for node, pods := range v.index.Revision(web) {
		counts[node.Name] = pods
	}
	return counts
}

func TestIndexRevision(t *testing.T) {
	v := newView("n1", "n2", "n3")
	v.join(st.MakeNode().Name("down").Condition(corev1.NodeReady, corev1.ConditionUnknown, "", "").Obj())
	v.join(st.MakeNode().Name("cordoned").Unschedulable(true).Obj())
	v.put("n1", "web-1", st.MakePod(), st.MakePod())
	v.put("n1", "web-2", st.MakePod())
	v.put("n2", "web-1", st.MakePod())
	v.put("n3", "web-2", st.MakePod(), st.MakePod(), st.MakePod().Terminating(), st.MakePod().Phase(corev1.PodFailed))
	v.put("down", "web-2", st.MakePod())
	v.put("cordoned", "web-2", st.MakePod())
	want := map[string]int64{"n1": 1, "n3": 2, "down": 1, "cordoned": 1}
	if d := gocmp.Diff(want, v.revision()); d != "" {
		t.Error("want -, got +:\n" + d)
	}
	for range v.index.Revision(web) {
		break // who has seen enough is not told more
	}
}

// A pod's ReplicaSet becomes known while the nodes are counted: the identity returned
// is the one under which the pods on them are counted.
func TestIndexRefreshForAPodWhoseOwnerBecomesKnown(t *testing.T) {
	v := newView("n1")
	v.put("n1", "web-3", st.MakePod())
	waiting := plugintest.Pod(st.MakePod().Name("p").UID("p").Label("pod-template-hash", "3"), "apps/v1 ReplicaSet web-3 web-3-uid")
	if id := v.index.RefreshFor(waiting, podcount.Snapshot{Nodes: v.infos}); !id.Provisional || id.Workload.Name != "web-3" {
		t.Errorf("before its ReplicaSet is known the pod is %+v", id)
	}
	// The pod is asked for first, then the one on the node: the ReplicaSet comes between.
	v.rs.Asked, v.rs.Before = 0, func(asked int) {
		if asked == 2 {
			v.rs.Add(plugintest.ReplicaSet("web-3", "web-3-uid", plugintest.Owner("apps/v1 Deployment web web-uid")))
		}
	}
	id := v.index.RefreshFor(waiting, podcount.Snapshot{Nodes: v.infos})
	if id.Provisional || id.Workload != web.Workload {
		t.Errorf("afterwards the pod is %+v", id)
	}
	counted := int64(0)
	for _, pods := range v.index.Revision(id) {
		counted += pods
	}
	if counted != 1 {
		t.Errorf("%d pods are counted beside it, want 1", counted)
	}
}

// In the cycle of a pod group the scheduler puts pods on the nodes of its snapshot,
// and takes them away, without a new generation.
func TestIndexSeesPodsAssumedInTheSnapshotAlone(t *testing.T) {
	v := newView()
	snapshot := cache.NewSnapshot(nil, []*corev1.Node{st.MakeNode().Name("n1").Obj()})
	step := func(name string, want int64) {
		t.Helper()
		nodes, err := snapshot.NodeInfos().List()
		if err != nil {
			t.Fatal(err)
		}
		v.infos = nodes
		if got := v.revision()["n1"]; got != want {
			t.Errorf("%s: %d pods count, want %d", name, got, want)
		}
	}
	assume := func(name, revision string) *corev1.Pod {
		t.Helper()
		p := plugintest.Pod(st.MakePod().Name(name).UID(name).Node("n1").Label("pod-template-hash", revision), "apps/v1 ReplicaSet web-"+revision+" web-"+revision+"-uid")
		info, err := framework.NewPodInfo(p)
		if err == nil {
			err = snapshot.AssumePod(info)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	step("at first", 0)
	old := assume("a", "1")
	step("with one of the old revision", 0)
	if err := snapshot.ForgetPod(fakeLogger(t), old); err != nil {
		t.Fatal(err)
	}
	p := assume("b", "2")
	step("with another in its place", 1)
	if err := snapshot.ForgetPod(fakeLogger(t), p); err != nil {
		t.Fatal(err)
	}
	step("when it is forgotten", 0)
}
