// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	m.Run()
}

var must = placementtest.Must

// policy is one that selects app=web in the namespace ns.
func policy(name string, age time.Duration, levels ...placementv1alpha1.Level) *placementv1alpha1.PlacementPolicy {
	return &placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: "uid", Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(-age)),
		},
		Spec: placementv1alpha1.PlacementPolicySpec{PodSelector: *matching, Levels: levels},
	}
}

func TestReadPolicy(t *testing.T) {
	in := policy("p", 0,
		placementv1alpha1.Level{TopologyKey: "zone", NodesWithoutKey: "OwnDomain", Shares: []placementv1alpha1.ValueShare{{Value: "b", Share: 30}, {Value: "a", Share: 70}}, UnlistedShare: new(int64(5)), NodesWithoutKeyShare: new(int64(1))},
		placementv1alpha1.Level{TopologyKey: "rack", Strategy: "Pack", NodesWithoutKey: "Exclude"},
	)
	in.Spec.DomainLimits = []placementv1alpha1.DomainLimit{{TopologyKey: "kubernetes.io/hostname", MaxPods: 1}, {TopologyKey: "rack", MaxPods: 2}}
	p := clusterview.ReadPolicy(in)
	levels, err := p.Levels()
	if got, want := level.Format(levels), "spread=zone;weight.=1;weight.*=5;weight.a=70;weight.b=30,pack=rack;nodesWithoutKey=Exclude"; err != nil || got != want {
		t.Errorf("the levels are %q, %v, want %q", got, err, want)
	}
	limits, err := p.DomainLimits()
	if want := []limit.Limit{{Property: level.Property{Label: "kubernetes.io/hostname"}, Pods: 1}, {Property: level.Property{Label: "rack"}, Pods: 2}}; err != nil || !slices.Equal(limits, want) {
		t.Errorf("the limits are %v, %v, want %v", limits, err, want)
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

// What an API server should have refused must not be skipped.
func TestReadPolicyRefuses(t *testing.T) {
	type spec = placementv1alpha1.PlacementPolicySpec
	levels := func(l ...placementv1alpha1.Level) spec { return spec{Levels: l} }
	limits := func(l ...placementv1alpha1.DomainLimit) spec { return spec{DomainLimits: l} }
	for name, tc := range map[string]struct {
		spec   spec
		levels []string // the error of the levels holds them all; none: there is none
		limits []string
	}{
		"strategy":        {levels(placementv1alpha1.Level{TopologyKey: "a", Strategy: "Sprad"}), []string{"spec.levels[0].strategy", `"Sprad"`, "Spread or Pack"}, nil},
		"share":           {levels(placementv1alpha1.Level{TopologyKey: "a", Share: "Equal"}), []string{"spec.levels[0].share", "use Allocatable"}, nil},
		"nodesWithoutKey": {levels(placementv1alpha1.Level{TopologyKey: "a"}, placementv1alpha1.Level{TopologyKey: "b", NodesWithoutKey: "Exclud"}), []string{"spec.levels[1].nodesWithoutKey", `"Exclud"`, "use LastResort, OwnDomain or Exclude"}, nil},
		"Docker's name":   {levels(placementv1alpha1.Level{TopologyKey: "node.id"}), []string{"spec.levels[0].topologyKey", `"node.id"`, "use the key of a node label"}, nil},
		"key twice":       {levels(placementv1alpha1.Level{TopologyKey: "a"}, placementv1alpha1.Level{TopologyKey: "a"}), []string{"spec.levels:", "level 2", "once"}, nil},
		"limit":           {limits(placementv1alpha1.DomainLimit{TopologyKey: "a"}), nil, []string{"spec.domainLimits:", `limit 1 "a=0"`, "from 1"}},
		"limit key":       {limits(placementv1alpha1.DomainLimit{TopologyKey: "engine.x", MaxPods: 1}), nil, []string{"spec.domainLimits[0].topologyKey", `"engine.x"`}},
		"selector": {
			spec{PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Inn"}}}},
			[]string{"spec.podSelector", "Inn"}, []string{"spec.podSelector", "Inn"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := policy("p", 0)
			in.Spec = tc.spec
			p := clusterview.ReadPolicy(in)
			_, levelsErr := p.Levels()
			_, limitsErr := p.DomainLimits()
			if p.Err() == nil {
				t.Error("it counts as readable")
			}
			for _, got := range []struct {
				err  error
				want []string
			}{{levelsErr, tc.levels}, {limitsErr, tc.limits}} {
				if (got.err != nil) != (len(got.want) > 0) {
					t.Errorf("got %v, want %q", got.err, got.want)
				}
				for _, part := range got.want {
					if !strings.Contains(got.err.Error(), part) || !strings.Contains(got.err.Error(), `PlacementPolicy "p"`) {
						t.Errorf("the error does not say %q and the policy: %v", part, got.err)
					}
				}
			}
		})
	}
}

// A selector that cannot be read must not let pods go as if there were no policy.
func TestSelectorThatCannotBeReadSelectsAll(t *testing.T) {
	in := policy("p", 0)
	in.Spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
	p := clusterview.ReadPolicy(in)
	if !p.Selects(asking().Obj()) || p.Selects(asking().Namespace("other").Obj()) {
		t.Error("it does not select just the pods of its namespace")
	}
	if _, err := clusterview.LevelsOf(asking().Obj(), p, nil); err == nil || !strings.Contains(err.Error(), "a b") {
		t.Errorf("its pods are not refused: %v", err)
	}
}

// What the API server lets pass in a selector, however long, is not repeated in the status of every pod.
func TestRegression_ALongSelectorIsCut(t *testing.T) {
	long := strings.Repeat("ä", 20000)
	for _, selector := range []metav1.LabelSelector{
		{MatchLabels: map[string]string{"app": long}},
		{MatchLabels: map[string]string{long: "a"}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOperator(long)}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In", Values: slices.Repeat([]string{"a b"}, 10000)}}},
	} {
		in := policy("p", 0)
		in.Spec.PodSelector = selector
		_, err := clusterview.ReadPolicy(in).Levels()
		if err == nil || len(err.Error()) > 400 || !utf8.ValidString(err.Error()) || !strings.Contains(err.Error(), "63 characters at most") {
			t.Errorf("got %.500v", err)
		}
	}
}

func TestLevelsUnderAPolicy(t *testing.T) {
	byRack := clusterview.ReadPolicy(policy("p", 0, placementv1alpha1.Level{TopologyKey: "rack"}))
	bad := clusterview.ReadPolicy(policy("p", 0, placementv1alpha1.Level{TopologyKey: "node.id"}))
	silent := clusterview.ReadPolicy(policy("p", 0))
	override := func(in *placementv1alpha1.PlacementPolicy) *clusterview.Policy {
		in.Spec.Mode = placementv1alpha1.ModeOverride
		return clusterview.ReadPolicy(in)
	}
	overriding := override(policy("p", 0, placementv1alpha1.Level{TopologyKey: "rack"}))
	silentOverride := override(policy("p", 0))
	annotated := asking().Annotation(clusterview.PlacementAnnotation, "pack=rack").Obj()
	constrained := soft(asking(), "zone", matching).Obj()
	const byRacks, byZones = "spread=rack;nodesWithoutKey=LastResort", "spread=zone;nodesWithoutKey=LastResort"
	for name, tc := range map[string]struct {
		policy *clusterview.Policy
		pod    *corev1.Pod
		want   string // "" for an error
	}{
		"annotation over policy":                          {byRack, annotated, "pack=rack"},
		"annotation over a bad policy":                    {bad, annotated, "pack=rack"},
		"constraints over policy":                         {byRack, constrained, byZones},
		"constraints over a bad policy":                   {bad, constrained, byZones},
		"policy over defaults":                            {byRack, asking().Obj(), byRacks},
		"a policy that overrides constraints":             {overriding, constrained, byRacks},
		"a policy that overrides an annotation":           {overriding, annotated, byRacks},
		"a policy that overrides, and says nothing of it": {silentOverride, annotated, "pack=rack"},
		"a policy that says nothing of it":                {silent, constrained, byZones},
		"a policy that cannot be read":                    {bad, asking().Obj(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			levels, err := clusterview.LevelsOf(tc.pod, tc.policy, plugintest.Levels(t, "spread=a"))
			if (err != nil) != (tc.want == "") || level.Format(levels.List) != tc.want {
				t.Errorf("got %q, %v, want %q", level.Format(levels.List), err, tc.want)
			}
		})
	}
}

// ranked is a policy with a priority and a mode.
func ranked(name string, age time.Duration, priority int32, mode placementv1alpha1.Mode) *placementv1alpha1.PlacementPolicy {
	p := policy(name, age)
	p.Spec.Priority, p.Spec.Mode = priority, mode
	return p
}

func TestGoverning(t *testing.T) {
	other := policy("a-other", 3*time.Hour)
	other.Spec.PodSelector.MatchLabels = map[string]string{"app": "db"}
	elsewhere := policy("a-elsewhere", 3*time.Hour)
	elsewhere.Namespace = "elsewhere"
	faults := policy("a-faults", 3*time.Hour)
	faults.Spec.Faults = &placementv1alpha1.Faults{}
	nothing := policy("a-nothing", 3*time.Hour)
	for name, tc := range map[string]struct {
		policies []*placementv1alpha1.PlacementPolicy
		want     string
	}{
		"none":                   {nil, ""},
		"one":                    {[]*placementv1alpha1.PlacementPolicy{policy("a", 0)}, "a"},
		"the older":              {[]*placementv1alpha1.PlacementPolicy{policy("a", 0), policy("b", time.Second)}, "b"},
		"by name on a tie":       {[]*placementv1alpha1.PlacementPolicy{policy("b", 0), policy("a", 0)}, "a"},
		"the higher priority":    {[]*placementv1alpha1.PlacementPolicy{ranked("a", time.Hour, 1, ""), ranked("b", 0, 2, "")}, "b"},
		"one that overrides":     {[]*placementv1alpha1.PlacementPolicy{ranked("a", time.Hour, 9, ""), ranked("b", 0, -9, placementv1alpha1.ModeOverride)}, "b"},
		"of two that override":   {[]*placementv1alpha1.PlacementPolicy{ranked("a", 0, 1, placementv1alpha1.ModeOverride), ranked("b", 0, 2, placementv1alpha1.ModeOverride)}, "b"},
		"of other pods":          {[]*placementv1alpha1.PlacementPolicy{other}, ""},
		"of other pods, and one": {[]*placementv1alpha1.PlacementPolicy{other, policy("b", 0)}, "b"},
		"of faults alone":        {[]*placementv1alpha1.PlacementPolicy{faults}, "a-faults"},
		"of faults alone, first": {[]*placementv1alpha1.PlacementPolicy{faults, policy("b", 0)}, "a-faults"},
		"of nothing, first":      {[]*placementv1alpha1.PlacementPolicy{nothing, policy("b", 0)}, "b"},
		"of another namespace":   {[]*placementv1alpha1.PlacementPolicy{elsewhere}, ""},
	} {
		var policies []*clusterview.Policy
		for _, in := range tc.policies {
			if in.Spec.Faults == nil && in != nothing {
				in.Spec.Levels = []placementv1alpha1.Level{{TopologyKey: "zone"}}
			}
			policies = append(policies, clusterview.ReadPolicy(in))
		}
		slices.SortFunc(policies, (*clusterview.Policy).Compare)
		got := clusterview.Governing(policies, asking().Obj())
		if (got == nil) != (tc.want == "") || (got != nil && got.Name != tc.want) {
			t.Errorf("%s: got %v, want %q", name, got, tc.want)
		}
	}
}

func TestFaultRule(t *testing.T) {
	for name, tc := range map[string]struct {
		faults    *placementv1alpha1.Faults
		threshold int
		window    time.Duration
	}{
		"none":       {nil, 5, 5 * time.Minute},
		"empty":      {&placementv1alpha1.Faults{}, 5, 5 * time.Minute},
		"threshold":  {&placementv1alpha1.Faults{Threshold: new(int32(2))}, 2, 5 * time.Minute},
		"window":     {&placementv1alpha1.Faults{WindowSeconds: new(int32(3600))}, 5, time.Hour},
		"too little": {&placementv1alpha1.Faults{Threshold: new(int32(0)), WindowSeconds: new(int32(0))}, 1, time.Second},
		"too much":   {&placementv1alpha1.Faults{Threshold: new(int32(1001)), WindowSeconds: new(int32(25 * 3600))}, 1000, 24 * time.Hour},
	} {
		in := policy("a", 0)
		in.Spec.Faults = tc.faults
		rule := clusterview.ReadPolicy(in).FaultRule(failure.Rule{Threshold: 5, Window: 5 * time.Minute})
		if rule.Threshold != tc.threshold || rule.Window != tc.window {
			t.Errorf("%s: got %d in %v, want %d in %v", name, rule.Threshold, rule.Window, tc.threshold, tc.window)
		}
	}
	given := failure.Rule{Threshold: 5, Window: time.Minute}
	if rule := (*clusterview.Policy)(nil).FaultRule(given); rule != given {
		t.Errorf("without a policy: %d in %v", rule.Threshold, rule.Window)
	}
}

// Whatever order policies are seen in, the same one governs, and no other that selects the pod comes before it.
func TestGoverningDoesNotDependOnTheOrderSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var policies []*clusterview.Policy
		names := rapid.SliceOfNDistinct(rapid.StringMatching("[a-d]{1,2}"), 1, 8, rapid.ID).Draw(t, "names")
		for _, name := range names {
			in := policy(name, time.Duration(rapid.IntRange(0, 2).Draw(t, "age"))*time.Second)
			in.Spec.Levels = []placementv1alpha1.Level{{TopologyKey: "zone"}}
			if rapid.Bool().Draw(t, "other") {
				in.Spec.PodSelector.MatchLabels = map[string]string{"app": "db"}
			}
			policies = append(policies, clusterview.ReadPolicy(in))
		}
		slices.SortFunc(policies, (*clusterview.Policy).Compare)
		got := clusterview.Governing(policies, asking().Obj())
		shuffled := rapid.Permutation(policies).Draw(t, "shuffled")
		slices.SortFunc(shuffled, (*clusterview.Policy).Compare)
		if again := clusterview.Governing(shuffled, asking().Obj()); again != got {
			t.Fatalf("got %v and %v", got, again)
		}
		for _, p := range policies {
			if p.Selects(asking().Obj()) && (got == nil || p.Compare(got) < 0) {
				t.Fatalf("%v governs, and %v comes before it", got, p)
			}
		}
	})
}

func TestSame(t *testing.T) {
	base := clusterview.ReadPolicy(policy("a", 0))
	labelled := policy("a", 0)
	labelled.Labels = map[string]string{"x": "y"}
	edited := policy("a", 0)
	edited.Generation = 2
	again := policy("a", 0)
	again.UID = "another"
	if !base.Same(clusterview.ReadPolicy(labelled)) {
		t.Error("a label makes it another policy")
	}
	if base.Same(clusterview.ReadPolicy(edited)) || base.Same(clusterview.ReadPolicy(again)) {
		t.Error("another spec, or another object, is the same policy")
	}
}

// Whether a policy's pods are replaced it says itself, or the flags say it. Of one that cannot be read none are.
func TestMovesOfAPolicy(t *testing.T) {
	type moves = placementv1alpha1.Moves
	var none *clusterview.Policy
	says := func(m *moves) *clusterview.Policy {
		in := policy("p", 0)
		in.Spec.Moves = m
		return clusterview.ReadPolicy(in)
	}
	malformed := policy("p", 0, placementv1alpha1.Level{TopologyKey: "node.id"})
	malformed.Spec.Moves = &moves{Drained: "All", Rebalance: "Enabled", Restart: "Enabled"}
	everything := policy("p", 0)
	everything.Spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
	everything.Spec.Moves = malformed.Spec.Moves
	for name, tc := range map[string]struct {
		policy *clusterview.Policy
		// off and on are what is replaced if the flags say none, and all.
		off, on string
	}{
		"no policy":                      {none, "None false false", "All true true"},
		"nothing":                        {says(nil), "None false false", "All true true"},
		"those that are blocked":         {says(&moves{Drained: "Blocked"}), "Blocked false false", "Blocked true true"},
		"all":                            {says(&moves{Drained: "All", Rebalance: "Enabled", Restart: "Enabled"}), "All true true", "All true true"},
		"none":                           {says(&moves{Drained: "None", Rebalance: "Disabled", Restart: "Disabled"}), "None false false", "None false false"},
		"levels that cannot be read":     {clusterview.ReadPolicy(malformed), "None false false", "None false false"},
		"a selector that cannot be read": {clusterview.ReadPolicy(everything), "None false false", "None false false"},
	} {
		for _, flags := range []struct {
			drained placementv1alpha1.DrainedPods
			others  bool
			want    string
		}{{"None", false, tc.off}, {"All", true, tc.on}} {
			got := fmt.Sprint(tc.policy.Drained(flags.drained), " ", tc.policy.Rebalances(flags.others), " ", tc.policy.Restarts(flags.others))
			if got != flags.want {
				t.Errorf("%s: with flags %v it is %s, want %s", name, flags, got, flags.want)
			}
		}
	}
	if !says(&moves{}).Places() || says(nil).Places() {
		t.Error("a policy has a say that says something of moves, and no other")
	}
}
