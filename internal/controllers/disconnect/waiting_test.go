// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package disconnect

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// However many nodes do not answer, and for however long, so many Moves wait for them and no more. A pod beyond that is kept for as long as it would
// have been without a policy.
func TestMovesThatWaitAreBounded(t *testing.T) {
	objects := []client.Object{policyFor("web", keeps), pod("a", "web", "ReplicaSet", "web-2"), pod("b", "web", "ReplicaSet", "web-2")}
	for i := range mostWaiting + 1 {
		m := &placementv1alpha1.Move{
			ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint("m-", i)},
			Spec:       placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDisconnect},
			Status:     placementv1alpha1.MoveStatus{Phase: placementv1alpha1.MoveWaiting},
		}
		if i < 2 {
			m.Status.Phase = placementv1alpha1.MoveDone // it does not count
		}
		objects = append(objects, m)
	}
	r := newRig(t, objects...)
	r.after(time.Second)
	r.after(31 * time.Second)
	var moves placementv1alpha1.MoveList
	if err := r.Client.List(t.Context(), &moves, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	if len(moves.Items) != 1 || moves.Items[0].Name != "a" {
		t.Errorf("there are %d Moves besides, want that of pod a", len(moves.Items))
	}
	r.after(301 * time.Second)
	if got := r.tolerates("b"); got != "0" {
		t.Errorf("pod b tolerates it for %s", got)
	}
}
