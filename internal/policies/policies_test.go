// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/optionalkind"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInstalledLaterAndRemoved(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, func(*cluster) {}, web).wakes("web")
	r.governs("", web)
	r.cluster.Add(policy("a", "web", 1))
	r.cluster.set(func() { r.cluster.there = true })
	r.wakes("web")
	r.governs("a", web)
	// Nobody says that policies are deleted; the next list finds no kind.
	r.cluster.set(func() {
		r.cluster.there = false
		r.cluster.listErr = apierrors.NewNotFound(placementv1alpha1.Resource(placementv1alpha1.PlacementPolicyResource), "")
	})
	r.cluster.ResetWatch()
	r.wakes("web")
	r.governs("", web)
	r.cluster.set(func() { r.cluster.there, r.cluster.listErr = true, nil })
	r.wakes("web")
	r.governs("a", web)
}

// While an API server does not answer, no pod is placed as if there were no policy.
func TestUnreadable(t *testing.T) {
	web := pod("ns", "web", "web")
	down := errors.New("it is down")
	for name, tc := range map[string]struct{ prepare, later func(*cluster) }{
		"no answer": {prepare: func(c *cluster) { c.answerErr = down }},
		"no list":   {prepare: func(c *cluster) { c.there, c.listErr = true, down }},
		// That there was no kind must not stand for what it has now.
		"installed later, no list": {func(*cluster) {}, func(c *cluster) { c.there, c.listErr = true, down }},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, tc.prepare, web)
			if tc.later != nil {
				r.wakes("web")
				r.governs("", web)
				r.cluster.set(func() { tc.later(r.cluster) })
				r.refuses(web)
			}
			if p, err := r.Await(t.Context(), framework.NewCycleState(), web); err == nil || !strings.Contains(err.Error(), "it is down") || !strings.Contains(err.Error(), "policies cannot be read") {
				t.Errorf("got %v, %v", p, err)
			}
			if !isUnreadable(t) {
				t.Error("the metric says that policies can be read")
			}
			r.cluster.set(func() { r.cluster.there, r.cluster.answerErr, r.cluster.listErr = true, nil, nil })
			r.wakes("web")
			r.governs("", web)
			if isUnreadable(t) {
				t.Error("the metric still says that policies cannot be read")
			}
		})
	}
}

func isUnreadable(t *testing.T) bool {
	t.Helper()
	n, err := testutil.GetGaugeMetricValue(unreadable.GaugeMetric)
	must(t, err)
	return n > 0
}

// A right that the scheduler lacks stops no pod: most are of namespaces without a policy. It is given any time.
func TestForbidden(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, func(c *cluster) {
		c.there = true
		c.listErr = apierrors.NewForbidden(placementv1alpha1.Resource(placementv1alpha1.PlacementPolicyResource), "", errors.New("no right"))
	}, web).wakes("web")
	r.governs("", web)
	if !isUnreadable(t) {
		t.Error("the metric says that policies can be read")
	}
	r.cluster.Add(policy("a", "web", 1))
	r.cluster.set(func() { r.cluster.listErr = nil })
	r.wakes("web")
	r.governs("a", web)
}

// An API server that has been away does not leave the metric behind.
func TestReadableAgain(t *testing.T) {
	web := pod("ns", "web", "web")
	r := start(t, installed, web).wakes("web")
	until := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(limit); isUnreadable(t) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it does not become %t that the metric says that policies cannot be read", want)
			}
		}
	}
	r.cluster.set(func() { r.cluster.listErr = errors.New("it is down") })
	r.cluster.ResetWatch()
	until(true)
	r.governs("", web)
	r.cluster.set(func() { r.cluster.listErr = nil })
	until(false)
}

// The pods of a DaemonSet are placed by no policy: while policies cannot be read a new
// node would otherwise wait for its network for ever. They do not even wait for an answer.
func TestRegression_DaemonSetsWithoutPolicies(t *testing.T) {
	p := newPolicies(nil) // nobody will ever read any
	daemon := pod("ns", "p", "web")
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "cni", Controller: new(true)}}
	asked := time.Now()
	if got, err := p.Await(t.Context(), framework.NewCycleState(), daemon); got != nil || err != nil || time.Since(asked) >= awaitFor {
		t.Errorf("got %v, %v after %v", got, err, time.Since(asked))
	}
	if got, err := p.Placing(daemon); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := p.Placing(pod("ns", "p", "web")); !errors.Is(err, optionalkind.ErrUnread) {
		t.Errorf("a pod of anything else: %v", err)
	}
	known := Fixed(clusterview.ReadPolicy(policy("one", "web", 1)), clusterview.ReadPolicy(policy("two", "web", 1)))
	before := conflicts(t)
	got, err := known.Await(t.Context(), framework.NewCycleState(), daemon)
	if known.NoteRivals(got, daemon); got != nil || err != nil || conflicts(t) != before {
		t.Errorf("it is placed by %v, %v, and %v conflicts were counted", got, err, conflicts(t)-before)
	}
}

func TestAwait(t *testing.T) {
	p := newPolicies(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Await(ctx, framework.NewCycleState(), pod("ns", "p", "web")); !errors.Is(err, optionalkind.ErrUnread) {
		t.Errorf("before anything is known: %v", err)
	}
	if got, err := Fixed().Await(t.Context(), framework.NewCycleState(), pod("ns", "p", "web")); got != nil || err != nil {
		t.Errorf("without policies: %v, %v", got, err)
	}
}

// All plugins of a cycle are told the same, whatever is edited in between.
func TestAwaitOnceACycle(t *testing.T) {
	state, web := framework.NewCycleState(), pod("ns", "p", "web")
	known := Fixed(clusterview.ReadPolicy(policy("one", "web", 1)))
	first, err := known.Await(t.Context(), state, web)
	if err != nil || first == nil {
		t.Fatalf("got %v, %v", first, err)
	}
	clear(known.byNamespace)
	if again, err := known.Await(t.Context(), state, web); again != first || err != nil {
		t.Errorf("after an edit the cycle has %v, %v", again, err)
	}
	if next, err := known.Await(t.Context(), framework.NewCycleState(), web); next != nil || err != nil {
		t.Errorf("the next cycle has %v, %v", next, err)
	}
}

// Beyond so many policies of a namespace none has a say.
func TestTooManyPolicies(t *testing.T) {
	var all []*clusterview.Policy
	for i := range clusterview.MaxPolicies + 1 {
		all = append(all, clusterview.ReadPolicy(policy(fmt.Sprintf("p%03d", i), fmt.Sprint("app", i), 1)))
	}
	known := Fixed(all...)
	for i, want := range map[int]bool{0: true, clusterview.MaxPolicies - 1: true, clusterview.MaxPolicies: false} {
		if got, err := known.Governing(pod("ns", "p", fmt.Sprint("app", i))); err != nil || (got != nil) != want {
			t.Errorf("policy %d: got %v, %v", i, got, err)
		}
	}
}

func TestNoteRivals(t *testing.T) {
	policy := func(name, app string, levels ...placementv1alpha1.Level) *clusterview.Policy {
		p := policy(name, app, 1)
		p.Spec.Levels = levels
		return clusterview.ReadPolicy(p)
	}
	zone := placementv1alpha1.Level{TopologyKey: "zone"}
	for name, tc := range map[string]struct {
		policies []*clusterview.Policy
		want     float64
	}{
		"none":                       {nil, 0},
		"one":                        {[]*clusterview.Policy{policy("a", "web", zone)}, 0},
		"of other pods":              {[]*clusterview.Policy{policy("a", "other", zone), policy("b", "web", zone), policy("c", "other", zone)}, 0},
		"two":                        {[]*clusterview.Policy{policy("a", "web", zone), policy("b", "other", zone), policy("c", "web", zone)}, 1},
		"three count as one":         {[]*clusterview.Policy{policy("a", "web", zone), policy("b", "web", zone), policy("c", "web", zone)}, 1},
		"one that has no say":        {[]*clusterview.Policy{policy("a", "web", zone), policy("b", "web")}, 0},
		"of two, the older has none": {[]*clusterview.Policy{policy("a", "web"), policy("b", "web", zone)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			known, web := Fixed(tc.policies...), pod("ns", "p", "web")
			governing, err := known.Governing(web)
			must(t, err)
			before := conflicts(t)
			known.NoteRivals(governing, web)
			if got := conflicts(t) - before; got != tc.want {
				t.Errorf("%v conflicts were counted, want %v", got, tc.want)
			}
		})
	}
}

func conflicts(t *testing.T) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(conflictsTotal.CounterMetric)
	must(t, err)
	return n
}
