// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// In the cycle of a pod group the scheduler puts pods on the nodes of its snapshot,
// and takes them away, without a new generation. They hold their ports meanwhile, and
// no longer.
func TestRegression_PodsOfAGroupShareAPort(t *testing.T) {
	pl, next := newPlugin(t), wanting(t, "80/tcp").Name("next").UID("next").Obj()
	snapshot := cache.NewSnapshot(nil, []*corev1.Node{keeping("n", "").Obj()})
	expect := func(step string, want fwk.Code) {
		t.Helper()
		info, err := snapshot.NodeInfos().Get("n")
		if err != nil {
			t.Fatal(err)
		}
		if status := filter(t, pl, next, info); status.Code() != want {
			t.Errorf("%s: %v, want %v", step, status, want)
		}
	}
	expect("at first", fwk.Success)
	for _, name := range []string{"a", "b"} {
		member := wanting(t, "80/tcp").Name(name).UID(name).Node("n").Obj()
		info, err := framework.NewPodInfo(member)
		if err != nil {
			t.Fatal(err)
		}
		if err := snapshot.AssumePod(info); err != nil {
			t.Fatal(err)
		}
		expect("beside "+name+" of the group", fwk.Unschedulable)
		if err := snapshot.ForgetPod(klog.Background(), member); err != nil {
			t.Fatal(err)
		}
		expect("when "+name+" is forgotten", fwk.Success)
	}
	udp, err := framework.NewPodInfo(wanting(t, "80/udp").Name("u").UID("u").Node("n").Obj())
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.AssumePod(udp); err != nil {
		t.Fatal(err)
	}
	expect("beside one on another port", fwk.Success)
}
