// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
)

// Of every pod that is bound it is said that it is on its node: by what was written when it was bound, and by the way down the tree to it now.
func TestEveryBoundPodIsExplained(t *testing.T) {
	api, err := client.New(world.config, client.Options{Scheme: snapshot.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Read(t.Context(), api, "", time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := inspect.Open(t.Context(), s, manifests.SchedulerConfig, inspect.AllNodes)
	if err != nil {
		t.Fatal(err)
	}
	labels := make(map[string]map[string]string)
	for _, n := range snapshot.Of[*corev1.Node](s) {
		labels[n.Name] = n.Labels
	}
	explained := 0
	for _, pod := range snapshot.Of[*corev1.Pod](s) {
		node := pod.Spec.NodeName
		if node == "" || pod.Spec.SchedulerName != rig.SchedulerName {
			continue
		}
		e, err := c.Explain(t.Context(), pod.Namespace, pod.Name)
		if err != nil {
			t.Fatal(err)
		}
		if e.Node != node || len(e.Path) < 2 || e.Path[len(e.Path)-1].Chosen.Name != node || e.Decision == nil || e.Note != "" {
			t.Errorf("of %s on %s it is said %+v", pod.Name, node, e)
			continue
		}
		for _, turn := range e.Path[:len(e.Path)-1] {
			if turn.Chosen.Name != labels[node][turn.Level] {
				t.Errorf("of %s on %s it is said that it is in %s %s", pod.Name, node, turn.Level, turn.Chosen.Name)
			}
		}
		last := e.Decision.Steps[len(e.Decision.Steps)-1]
		if last.Level != decision.Node || last.Chosen.Name != node {
			t.Errorf("%s is on %s, and was bound with %s", pod.Name, node, e.Decision.String())
		}
		explained++
	}
	if want := 14 + 5 + 8; explained != want {
		t.Errorf("%d of %d pods are explained", explained, want)
	}
	// And so the command itself says.
	for _, name := range []string{"db-0", "db-4"} {
		pod, err := world.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if out := must(t, "explain", "pod/"+name, "-n", namespace); !strings.Contains(out, "\non node "+pod.Spec.NodeName+"\n") {
			t.Errorf("of %s on %s it prints\n%s", name, pod.Spec.NodeName, out)
		}
	}
}
