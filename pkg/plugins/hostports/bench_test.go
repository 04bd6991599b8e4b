// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// BenchmarkFilter is one pod over 1,000 nodes that have not changed: nothing is
// counted again, and nothing allocated.
func BenchmarkFilter(b *testing.B) {
	for _, pods := range []int{10, 100} {
		b.Run(fmt.Sprintf("%d-pods-a-node", pods), func(b *testing.B) {
			pl, pod := newPlugin(b), wanting(b, "80/tcp", "443/tcp").Obj()
			var infos []fwk.NodeInfo
			for n := range 1000 {
				name := fmt.Sprintf("n%d", n)
				var running []*corev1.Pod
				for i := range pods {
					id := fmt.Sprintf("%s-%d", name, i)
					running = append(running, wanting(b, fmt.Sprintf("%d/tcp", 1000+i)).Name(id).UID(id).Node(name).Obj())
				}
				info := framework.NewNodeInfo(running...)
				info.SetNode(keeping(name, "22/tcp,10250/tcp").Obj())
				infos = append(infos, info)
			}
			state := framework.NewCycleState()
			if _, status := pl.PreFilter(b.Context(), state, pod, infos); !status.IsSuccess() {
				b.Fatal(status)
			}
			pass := func() {
				for _, info := range infos {
					if status := pl.Filter(b.Context(), state, pod, info); !status.IsSuccess() {
						b.Fatal(status)
					}
				}
			}
			pass() // counts the nodes
			for b.Loop() {
				pass()
			}
		})
	}
}
