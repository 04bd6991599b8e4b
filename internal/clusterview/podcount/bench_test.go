// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"fmt"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func fakeLogger(t testing.TB) klog.Logger {
	logger, _ := ktesting.NewTestContext(t)
	return logger
}

// large is a cluster of 5,000 nodes with two pods each of which web has one.
func large() *view {
	v := newView()
	for i := range 5000 {
		name := fmt.Sprintf("node-%04d", i)
		v.join(st.MakeNode().Name(name).Label("zone", fmt.Sprint(i%3)).Obj())
		info := v.infos[i].(*framework.NodeInfo)
		info.AddPod(plugintest.Pod(st.MakePod().Name(name + "-a").UID(name + "-a").Node(name)))
		info.AddPod(plugintest.Pod(st.MakePod().Name(name+"-b").UID(name+"-b").Node(name).Label("pod-template-hash", "2"), "apps/v1 ReplicaSet web-2 web-2-uid"))
	}
	v.index.Refresh(podcount.Snapshot{Nodes: v.infos})
	return v
}

func BenchmarkIndexRefreshNothingChanged(b *testing.B) {
	v := large()
	b.ReportAllocs()
	for b.Loop() {
		v.index.Refresh(podcount.Snapshot{Nodes: v.infos})
	}
}

// Most pods change one node: that on which the one before was placed.
func BenchmarkIndexRefreshOneNodeChanged(b *testing.B) {
	for _, pods := range []int{2, 110} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			v := large()
			info := v.info("node-2500")
			for i := range pods - 2 {
				info.AddPod(plugintest.Pod(st.MakePod().Name(fmt.Sprint(i)).UID(fmt.Sprint(i)).Label("pod-template-hash", "2"), "apps/v1 ReplicaSet web-2 web-2-uid"))
			}
			node := info.Node()
			b.ReportAllocs()
			for b.Loop() {
				info.SetNode(node) // moves the generation
				v.index.Refresh(podcount.Snapshot{Nodes: v.infos})
			}
		})
	}
}

// A refresh that finds nothing changed is what every pod pays.
func TestIndexRefreshAllocatesNothing(t *testing.T) {
	v := newView("n1", "n2")
	v.put("n1", "web-2", st.MakePod())
	v.index.Refresh(podcount.Snapshot{Nodes: v.infos})
	if n := testing.AllocsPerRun(10, func() { v.index.Refresh(podcount.Snapshot{Nodes: v.infos}) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
