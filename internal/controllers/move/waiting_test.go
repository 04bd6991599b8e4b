// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// A Move that waits for a node comes after those that are under way, and the more there are the less often it is looked at. When the node answers
// it comes with the others again.
func TestMovesThatWaitHoldUpNoOthers(t *testing.T) {
	silent := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "silent"}}
	silent.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.NewTime(noon))}}
	for name, tc := range map[string]struct {
		node     string
		others   int
		again    time.Duration
		priority int
	}{
		"alone":                {"silent", 0, 10 * time.Second, handler.LowPriority},
		"with 999 others":      {"silent", 999, 100 * time.Second, handler.LowPriority},
		"its node answers":     {"answers", 999, time.Second, 0},
		"its node is gone too": {"gone", 0, 10 * time.Second, handler.LowPriority},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounting(t, silent, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "answers"}})
			pod := podOf("p", Kind, "p")
			pod.OwnerReferences[0].UID, pod.Spec.NodeName = "move", tc.node
			m := &placementv1alpha1.Move{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "move", CreationTimestamp: metav1.NewTime(noon)},
				Spec: placementv1alpha1.MoveSpec{
					Pod: placementv1alpha1.ObjectReference{Name: "p", UID: "p"}, ReplicaSet: placementv1alpha1.ObjectReference{Name: "web-1", UID: "web-1"},
					Reason: placementv1alpha1.MoveDisconnect, DeadlineSeconds: 600,
				},
			}
			for _, o := range []client.Object{pod, m} {
				if err := c.api.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			r := &Reconciler{Client: c.api, API: c.api, Clock: clocktesting.NewFakeClock(noon.Add(time.Hour)), meters: newMeters()}
			for i := range tc.others {
				r.looked.note(client.ObjectKey{Name: fmt.Sprint(i)}, noon, 0)
			}
			var is ctrl.Result
			for range 2 { // the phase is written, and then looked at
				var err error
				if is, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
					t.Fatal(err)
				}
			}
			if is.RequeueAfter != tc.again || is.Priority == nil || *is.Priority != tc.priority {
				t.Errorf("it is %+v", is)
			}
		})
	}
}
