// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

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
