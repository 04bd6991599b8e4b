// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package governing

import (
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func inNamespace(namespace, name, app string) *placementv1alpha1.PlacementPolicy {
	p := &placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Generation: 1}}
	p.Spec.PodSelector.MatchLabels = map[string]string{"app": app}
	p.Spec.Moves = &placementv1alpha1.Moves{Rebalance: placementv1alpha1.MovesEnabled}
	return p
}

func ofCluster(name string, mode placementv1alpha1.Mode) *placementv1alpha1.ClusterPlacementPolicy {
	p := &placementv1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1}}
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"env": "prod"}
	p.Spec.Mode, p.Spec.Moves = mode, &placementv1alpha1.Moves{}
	return p
}

// A pod is governed as the scheduler has it governed: by the order of the kinds and modes, and what selects its namespace.
func TestReader(t *testing.T) {
	c := controllertest.New(t, time.Time{}, controllertest.Builder(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{"env": "prod"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test"}},
		inNamespace("prod", "own", "web"), inNamespace("test", "own", "web"), ofCluster("default", placementv1alpha1.ModeDefault),
	))
	var r Reader
	governed := func(want map[string]string) {
		t.Helper()
		p, err := r.Read(t.Context(), c.Server)
		c.Must(err)
		for of, want := range want {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: of[:4], Labels: map[string]string{"app": of[5:]}}}
			got := "nobody"
			if by := p.Of(pod); by != nil {
				got = by.String()
			}
			if got != want {
				t.Errorf("pod %s is governed by %s, want %s", of, got, want)
			}
		}
	}
	governed(map[string]string{
		"prod/web": `PlacementPolicy "own"`, "prod/db": `ClusterPlacementPolicy "default"`, "test/web": `PlacementPolicy "own"`, "test/db": "nobody",
	})
	// What has changed is read anew, and what is gone is forgotten.
	changed := inNamespace("prod", "own", "db")
	changed.Generation = 2
	c.Delete(inNamespace("prod", "own", ""), inNamespace("test", "own", ""))
	c.Create(changed, ofCluster("override", placementv1alpha1.ModeOverride))
	governed(map[string]string{"prod/web": `ClusterPlacementPolicy "override"`, "prod/db": `ClusterPlacementPolicy "override"`, "test/web": "nobody"})
	c.Delete(ofCluster("override", ""))
	governed(map[string]string{"prod/web": `ClusterPlacementPolicy "default"`, "prod/db": `PlacementPolicy "own"`})
}

// One that has not changed is the same one.
func TestWhatHasNotChangedIsNotReadAgain(t *testing.T) {
	c := controllertest.Builder(t, inNamespace("test", "own", "web")).Build()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Labels: map[string]string{"app": "web"}}}
	var r Reader
	first, err := r.Read(t.Context(), c)
	controllertest.Must(t, err)
	second, err := r.Read(t.Context(), c)
	controllertest.Must(t, err)
	if is := first.Of(pod); is == nil || is != second.Of(pod) {
		t.Errorf("it is %v, and then %v", is, second.Of(pod))
	}
}
