// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

// Moves that have not ended are counted, and of these the ones that are over their deadline.
func TestActiveMoves(t *testing.T) {
	made := func(name string, ago time.Duration, reason placementv1alpha1.MoveReason, phase placementv1alpha1.MovePhase) client.Object {
		return &placementv1alpha1.Move{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-ago))},
			Spec:       placementv1alpha1.MoveSpec{Reason: reason, DeadlineSeconds: 60}, Status: placementv1alpha1.MoveStatus{Phase: phase},
		}
	}
	a := &Active{Clock: clocktesting.NewFakePassiveClock(noon), Client: controllertest.Builder(t,
		made("a", time.Second, placementv1alpha1.MoveDrain, ""),
		made("b", time.Hour, placementv1alpha1.MoveDrain, placementv1alpha1.MoveEvicting),
		made("c", time.Hour, placementv1alpha1.MoveDrain, placementv1alpha1.MoveDone),
		made("d", time.Minute, placementv1alpha1.MoveRebalance, placementv1alpha1.MovePlanned),
	).Build()}
	registry := prometheus.NewRegistry()
	registry.MustRegister(a)
	got, err := registry.Gather()
	controllertest.Must(t, err)
	values := make(map[string]float64)
	for _, family := range got {
		for _, m := range family.GetMetric() {
			values[family.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"espalier_moves_active Drain": 2, "espalier_moves_active Rebalance": 1, "espalier_moves_active Restart": 0, "espalier_moves_active Disconnect": 0,
		"espalier_moves_overdue Drain": 1, "espalier_moves_overdue Rebalance": 0,
	} {
		if is, there := values[name]; !there || is != want {
			t.Errorf("%s is %v, want %v", name, is, want)
		}
	}
}

// Time counts as below what is wanted from one look to the next, if there are too few at the second.
func TestSecondsBelow(t *testing.T) {
	r := &Reconciler{meters: newMeters()}
	now := noon
	isReady := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	o := &objects{move: &placementv1alpha1.Move{Spec: placementv1alpha1.MoveSpec{Reason: placementv1alpha1.MoveDrain}}, pod: isReady}
	f := facts{phase: placementv1alpha1.MoveReplacing, holder: ours, wanted: 3}
	for _, step := range []struct {
		ready int
		want  float64
	}{{1, 0}, {2, 0}, {1, 1}, {1, 2}, {2, 2}, {3, 2}} {
		f.ready = step.ready
		r.meter(o, &f, now)
		now = now.Add(time.Second)
		if got := testutil.ToFloat64(r.meters.below.WithLabelValues("Drain")); got != step.want {
			t.Errorf("with %d others ready it is %v, want %v", step.ready, got, step.want)
		}
	}
	before := testutil.ToFloat64(r.meters.below.WithLabelValues("Drain"))
	f.wanted, f.ready = 9, 3
	r.meter(o, &f, now.Add(time.Second))
	f.wanted, f.ready, f.unready = 3, 0, true
	r.meter(o, &f, now.Add(2*time.Second))
	if got := testutil.ToFloat64(r.meters.below.WithLabelValues("Drain")); got != before {
		t.Errorf("pods that are wanted since count, or one that was not ready: %v", got-before)
	}
}

// docs/moves.md has a row for each metric of Moves, and for no other.
func TestMetricsAreExplained(t *testing.T) {
	text, err := os.ReadFile("../../../docs/moves.md")
	controllertest.Must(t, err)
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(espalier_[a-z_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		told = append(told, m[1])
	}
	registry, m := prometheus.NewRegistry(), newMeters()
	registry.MustRegister(m.ended, m.below, &Active{Client: controllertest.Builder(t).Build(), Clock: clocktesting.NewFakePassiveClock(time.Now())})
	var there []string
	descs := make(chan *prometheus.Desc, 100)
	registry.Describe(descs)
	close(descs)
	for d := range descs {
		there = append(there, regexp.MustCompile(`fqName: "([a-z_]+)"`).FindStringSubmatch(d.String())[1])
	}
	slices.Sort(told)
	slices.Sort(there)
	if !slices.Equal(told, there) {
		t.Errorf("there are %q, and rows of %q", there, told)
	}
}
