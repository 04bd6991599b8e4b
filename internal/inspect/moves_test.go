// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

func TestReadMoves(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	move := func(namespace, name string, age int, ended bool, phase placementv1alpha1.MovePhase) client.Object {
		m := &placementv1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(begin.Add(time.Duration(age) * time.Minute))}}
		m.Spec.Pod.Name, m.Spec.ReplicaSet.Name, m.Spec.Reason, m.Status.Phase = "pod-"+name, "web-1", placementv1alpha1.MoveDrain, phase
		if ended {
			m.Status.EndedAt = &metav1.Time{Time: begin.Add(time.Hour)}
		}
		return m
	}
	scheme := runtime.NewScheme()
	must(t, placementv1alpha1.AddToScheme(scheme))
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		move("ns", "done", 5, true, placementv1alpha1.MoveDone), move("ns", "old", 1, false, placementv1alpha1.MoveReplacing),
		move("ns", "young", 3, false, ""), move("other", "elsewhere", 2, false, placementv1alpha1.MoveEvicting),
	).Build()
	for namespace, want := range map[string]string{"ns": "young Planned, old Replacing, done Done", "": "young Planned, elsewhere Evicting, old Replacing, done Done"} {
		moves, err := ReadMoves(t.Context(), api, namespace)
		must(t, err)
		var got []string
		for _, m := range moves {
			got = append(got, m.Name+" "+string(m.Phase))
			if m.Pod != "pod-"+m.Name || m.ReplicaSet != "web-1" || m.Reason != placementv1alpha1.MoveDrain || (m.Ended != nil) != (m.Name == "done") {
				t.Errorf("%+v", m)
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("of namespace %q there are %s, want %s", namespace, text, want)
		}
	}
}

// without is an API server that does not have a kind.
type without struct{ client.Reader }

func (without) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Move"}}
}

func TestReadMovesWithoutTheKind(t *testing.T) {
	if _, err := ReadMoves(t.Context(), without{}, ""); err == nil || !strings.Contains(err.Error(), "apply manifests/crds") {
		t.Errorf("the error is %v", err)
	}
}
