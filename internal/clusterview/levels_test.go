// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// matching selects pods with app=web, other those with app=db.
var (
	matching = st.MakeLabelSelector().Label("app", "web").Obj()
	other    = st.MakeLabelSelector().Label("app", "db").Obj()
	empty    = &metav1.LabelSelector{}
)

// asking is a pod with the label app=web.
func asking() *st.PodWrapper { return st.MakePod().Name("p").Namespace("ns").Label("app", "web") }

func soft(p *st.PodWrapper, key string, selector *metav1.LabelSelector, matchLabelKeys ...string) *st.PodWrapper {
	return p.SpreadConstraint(1, key, corev1.ScheduleAnyway, selector, nil, nil, nil, matchLabelKeys)
}

func hard(p *st.PodWrapper, key string) *st.PodWrapper {
	return p.SpreadConstraint(1, key, corev1.DoNotSchedule, matching, nil, nil, nil, nil)
}

func TestLevels(t *testing.T) {
	const annotation = clusterview.PlacementAnnotation
	for _, tc := range []struct {
		name           string
		pod            *st.PodWrapper
		defaults, want string
	}{
		{"nothing asked for", asking(), "", ""},
		{"defaults", asking(), "spread=a,pack=b", "spread=a,pack=b"},
		{"annotation over all", soft(asking(), "zone", matching).Annotation(annotation, "pack=rack"), "spread=a", "pack=rack"},
		{"annotation in Docker's words", asking().Annotation(annotation, " spread=node.labels.rack "), "", "spread=rack"},
		{"constraints over defaults", soft(soft(asking(), "zone", matching), "host", matching), "spread=a", "spread=zone;nodesWithoutKey=LastResort,spread=host;nodesWithoutKey=LastResort"},
		{"DoNotSchedule is no level", hard(asking(), "zone"), "spread=a", "spread=a"},
		{"DoNotSchedule beside ScheduleAnyway", soft(hard(asking(), "zone"), "host", matching), "", "spread=host;nodesWithoutKey=LastResort"},
		{"a selector of other pods", soft(asking(), "zone", other), "spread=a", "spread=a"},
		{"of other pods, beside one of its own", soft(soft(asking(), "zone", other), "host", matching), "", "spread=host;nodesWithoutKey=LastResort"},
		{"no selector selects nothing", soft(asking(), "zone", nil), "", ""},
		{"an empty one selects everything", soft(asking(), "zone", empty), "", "spread=zone;nodesWithoutKey=LastResort"},
		{"matchLabelKeys change no level", soft(asking(), "zone", matching, "pod-template-hash"), "", "spread=zone;nodesWithoutKey=LastResort"},
		{"a key that would be refused as a property", soft(asking(), "node.id", matching), "", "spread=node.labels.node.id;nodesWithoutKey=LastResort"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			levels, err := clusterview.LevelsOf(tc.pod.Obj(), nil, plugintest.Levels(t, tc.defaults))
			must(t, err)
			if got := level.Format(levels.List); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if err := level.Validate(levels.List); err != nil {
				t.Errorf("the levels are not valid: %v", err)
			}
		})
	}
}

func TestLevelsThatCannotBeRead(t *testing.T) {
	const annotation = clusterview.PlacementAnnotation
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near", Values: []string{"x"}}}}
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		want []string // the error holds them all
	}{
		{"unknown strategy", asking().Annotation(annotation, "sprd=zone"), []string{annotation, `"sprd"`, "use spread=PROPERTY"}},
		{"empty annotation", asking().Annotation(annotation, ""), []string{annotation, "no levels"}},
		{"one bad level of two", asking().Annotation(annotation, "spread=zone,spread=node.id"), []string{"level 2", `"node.id"`}},
		{"the annotation is read before constraints", soft(asking(), "zone", matching).Annotation(annotation, "spread"), []string{annotation}},
		{"bad selector", soft(asking(), "zone", bad), []string{"topologySpreadConstraints", `"zone"`, "labelSelector", `"Near"`}},
		{"one key twice", soft(soft(asking(), "zone", matching), "zone", matching), []string{"topologySpreadConstraints", "level 2", "zone"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			levels, err := clusterview.LevelsOf(tc.pod.Obj(), nil, plugintest.Levels(t, "spread=a"))
			if err == nil {
				t.Fatalf("it was read as %q", level.Format(levels.List))
			}
			placementtest.WantParts(t, err.Error(), tc.want...)
			if levels.List != nil {
				t.Errorf("there are levels beside the error: %q", level.Format(levels.List))
			}
		})
	}
}

func TestLevelsOfTheCycle(t *testing.T) {
	state := framework.NewCycleState()
	if _, found, err := clusterview.ReadLevels(state); found || err != nil {
		t.Fatalf("a new cycle has levels: %t, %v", found, err)
	}
	clusterview.WriteLevels(state, clusterview.Levels{})
	if levels, found, err := clusterview.ReadLevels(state); !found || err != nil || levels.List != nil {
		t.Errorf("no levels were written, and read as %v, %t, %v", levels, found, err)
	}
	clusterview.WriteLevels(state, clusterview.Levels{List: plugintest.Levels(t, "spread=zone")})
	for name, s := range map[string]*framework.CycleState{"the state": state, "its clone": state.Clone().(*framework.CycleState)} {
		if levels, found, err := clusterview.ReadLevels(s); !found || err != nil || level.Format(levels.List) != "spread=zone" {
			t.Errorf("%s has %v, %t, %v", name, levels, found, err)
		}
	}
}

// What the first constraint of a pod selects is what is counted. matchLabelKeys mean what they mean upstream.
func TestSelectorOfConstraints(t *testing.T) {
	byTier := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}}
	pod := func() *st.PodWrapper { return asking().Label("tier", "front").Label("pod-template-hash", "2") }
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		want string // "" is no selector
		// is a selector to be looked up by, and of which pods.
		lookup, selects, not map[string]string
	}{
		{"labels", soft(pod(), "zone", matching), "app=web", map[string]string{"app": "web"}, map[string]string{"app": "web"}, map[string]string{"app": "db"}},
		{"expressions", soft(pod(), "zone", byTier), "tier", nil, map[string]string{"tier": "x"}, map[string]string{"app": "web"}},
		{"an expression with one value", soft(pod(), "zone", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}}), "app in (web)", map[string]string{"app": "web"}, map[string]string{"app": "web"}, map[string]string{"app": "db"}},
		{"the first of two", soft(soft(pod(), "zone", byTier), "host", matching), "tier", nil, map[string]string{"tier": "x"}, map[string]string{"app": "web"}},
		{"the first that selects the pod", soft(soft(pod(), "zone", other), "host", matching), "app=web", map[string]string{"app": "web"}, map[string]string{"app": "web"}, nil},
		{
			"matchLabelKeys", soft(pod(), "zone", matching, "pod-template-hash", "absent"), "app=web,pod-template-hash in (2)",
			map[string]string{"app": "web", "pod-template-hash": "2"},
			map[string]string{"app": "web", "pod-template-hash": "2"}, map[string]string{"app": "web", "pod-template-hash": "1"},
		},
		{"hard ones say nothing", hard(pod(), "zone"), "", nil, nil, nil},
		{"an annotation says all", soft(pod(), "zone", matching).Annotation(clusterview.PlacementAnnotation, "spread=zone"), "", nil, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			levels, err := clusterview.LevelsOf(tc.pod.Obj(), nil, nil)
			must(t, err)
			s := levels.Selector
			if s == nil {
				if tc.want != "" {
					t.Errorf("there is no selector, want %q", tc.want)
				}
				return
			}
			if want := (clusterview.Workload{Namespace: "ns", Kind: clusterview.KindSelector, Name: tc.want}); s.Workload() != want {
				t.Errorf("the workload is %v, want %v", s.Workload(), want)
			}
			if !labels.Equals(s.Labels, tc.lookup) {
				t.Errorf("it is looked up by %v, want %v", s.Labels, tc.lookup)
			}
			if !s.Matches(labels.Set(tc.selects)) || tc.not != nil && s.Matches(labels.Set(tc.not)) {
				t.Errorf("%q selects %v: %t, and %v: %t", s, tc.selects, s.Matches(labels.Set(tc.selects)), tc.not, s.Matches(labels.Set(tc.not)))
			}
		})
	}
}

// seventeen is a pod with one constraint more than there may be levels.
func seventeen() *st.PodWrapper {
	p := asking()
	for i := range 17 {
		p = soft(p, fmt.Sprintf("key-%d", i), matching)
	}
	return p
}

func TestIgnored(t *testing.T) {
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	wide := &metav1.LabelSelector{}
	with := func(maxSkew int, affinity, taints *corev1.NodeInclusionPolicy) *st.PodWrapper {
		return asking().SpreadConstraint(maxSkew, "zone", corev1.ScheduleAnyway, matching, nil, affinity, taints, nil)
	}
	for _, tc := range []struct {
		name string
		pod  *st.PodWrapper
		want []string // a part of each sentence, in order
	}{
		{"nothing asked", asking(), nil},
		{"what is honoured", with(1, nil, nil), nil},
		{"what is the same as nothing", with(1, &ignore, &ignore), nil},
		{"hard ones are in-tree", hard(asking(), "zone"), nil},
		{"maxSkew", with(5, nil, nil), []string{`over "zone" has maxSkew 5`}},
		{"both policies", with(1, &honor, &honor), []string{"nodeAffinityPolicy Honor", "nodeTaintsPolicy Honor"}},
		{"other pods", soft(soft(asking(), "zone", matching), "host", other), []string{`over "host" does not select the pod itself`}},
		{"another selector", soft(soft(asking(), "zone", matching), "host", wide), []string{`over "host" has a selector of its own`}},
		{"a key that is none", soft(soft(asking(), "zone ", matching), "host", matching), []string{`over "zone " is no level: this is no label key`}},
		{"no key at all that is one", soft(asking(), "{{ .Values.key }}", matching), []string{"is no level"}},
		{"only other pods", soft(asking(), "zone", other), []string{"does not select the pod itself"}},
		{"a seventeenth", seventeen(), []string{`over "key-16" is no level: a pod has 16 at most`}},
		{"an annotation", soft(asking(), "zone", matching).Annotation(clusterview.PlacementAnnotation, "spread=rack"), []string{"because the annotation " + clusterview.PlacementAnnotation}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			levels, err := clusterview.LevelsOf(tc.pod.Obj(), nil, plugintest.Levels(t, "spread=a"))
			must(t, err)
			got := clusterview.Ignored(tc.pod.Obj(), levels)
			if len(got) != len(tc.want) {
				t.Fatalf("it is said %q, want %d sentences", got, len(tc.want))
			}
			for i, part := range tc.want {
				if !strings.Contains(got[i], part) || !strings.HasSuffix(got[i], ".") {
					t.Errorf("it is said %q, want %q", got[i], part)
				}
			}
		})
	}
	overriding := policy("tiers", 0)
	overriding.Spec.Mode = placementv1alpha1.ModeOverride
	levels := clusterview.Levels{Source: clusterview.FromPolicy, Policy: clusterview.ReadPolicy(overriding)}
	pod := with(1, nil, nil).Annotation(clusterview.PlacementAnnotation, "spread=rack").Obj()
	if got := clusterview.Ignored(pod, levels); len(got) != 2 || !strings.Contains(got[0], `because PlacementPolicy "tiers" overrides`) || !strings.Contains(got[1], `because PlacementPolicy "tiers" overrides`) {
		t.Errorf("under a policy it is said %q", got)
	}
	// A policy that overrides nothing is for pods whose own constraints are none: that is the reason, and not the policy.
	levels.Policy = clusterview.ReadPolicy(policy("tiers", 0))
	if got := clusterview.Ignored(soft(asking(), "zone", other).Obj(), levels); len(got) != 1 || !strings.Contains(got[0], "does not select the pod itself") {
		t.Errorf("it is said %q", got)
	}
}

func TestPlacedBy(t *testing.T) {
	frontend := clusterview.ReadPolicy(&placementv1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "frontend", Generation: 3},
		Spec: placementv1alpha1.PlacementPolicySpec{Levels: []placementv1alpha1.Level{{
			TopologyKey: "zone", Shares: []placementv1alpha1.ValueShare{{Value: "a", Share: 70}, {Value: "b", Share: 30}},
		}}},
	})
	everywhere := clusterview.ReadClusterPolicy(clusterPolicy("frontend", "", placementv1alpha1.Level{TopologyKey: "rack"}))
	pod := func() *st.PodWrapper { return st.MakePod().Namespace("ns").Name("p").Label("app", "web") }
	for name, tc := range map[string]struct {
		pod    *st.PodWrapper
		policy *clusterview.Policy
		want   string
		by     *clusterview.Policy
	}{
		"an annotation":           {pod().Annotation(clusterview.PlacementAnnotation, "spread=zone,pack=rack"), frontend, "annotation spread=zone,pack=rack", nil},
		"a policy":                {pod(), frontend, "policy/frontend@3 spread=zone;weight.a=70;weight.b=30;nodesWithoutKey=LastResort", frontend},
		"a policy of the cluster": {pod(), everywhere, "clusterpolicy/frontend@1 spread=rack;nodesWithoutKey=LastResort", everywhere},
		"constraints": {pod().SpreadConstraint(1, "rack", corev1.ScheduleAnyway, st.MakeLabelSelector().Label("app", "web").Obj(), nil, nil, nil, nil), nil,
			"constraints spread=rack;nodesWithoutKey=LastResort", nil},
		"the defaults": {pod(), nil, "defaults spread=zone", nil},
	} {
		t.Run(name, func(t *testing.T) {
			levels, err := clusterview.LevelsOf(tc.pod.Obj(), tc.policy, plugintest.Levels(t, "spread=zone"))
			must(t, err)
			got := levels.PlacedBy()
			if got != tc.want {
				t.Errorf("it is placed by %q, want %q", got, tc.want)
			}
			for _, value := range []string{got, clusterview.Trimmed(got)} {
				for _, policy := range []*clusterview.Policy{frontend, everywhere} {
					if policy.Placed(value) != (policy == tc.by) {
						t.Errorf("%q names %s: %t", value, policy, policy.Placed(value))
					}
				}
				if clusterview.ByPolicy(value) != (tc.by != nil) {
					t.Errorf("%q names a policy: %t", value, clusterview.ByPolicy(value))
				}
			}
		})
	}
	if got := (clusterview.Levels{}).PlacedBy(); got != "defaults" {
		t.Errorf("a pod over no levels is placed by %q", got)
	}
}

// However much a pod asks for, what is written into it is short, and is cut between levels.
func TestPlacedByIsBounded(t *testing.T) {
	for levels := 1; levels <= 16; levels++ {
		for length := 1; length <= 60; length++ {
			var listed []string
			for i := range levels {
				listed = append(listed, fmt.Sprintf("spread=%s%d", strings.Repeat("x", length), i))
			}
			text := strings.Join(listed, ",")
			l := clusterview.Levels{Source: clusterview.FromAnnotation, List: plugintest.Levels(t, text)}
			got := l.PlacedBy()
			if len(got) > clusterview.MaxPlacedBy {
				t.Fatalf("%d levels of %d letters take %d bytes", levels, length, len(got))
			}
			if full := "annotation " + text; got == full {
				continue
			} else if len(full) <= clusterview.MaxPlacedBy {
				t.Fatalf("%q was cut, and has room", full)
			}
			cut, found := strings.CutSuffix(strings.TrimPrefix(got, "annotation "), ",...")
			if !found || !strings.HasPrefix(text, cut+",") {
				t.Fatalf("%d levels of %d letters became %q", levels, length, got)
			}
		}
	}
}

func TestWritePlacedBy(t *testing.T) {
	state := framework.NewCycleState()
	if _, found := clusterview.ReadPlacedBy(state); found {
		t.Error("a new cycle has levels")
	}
	clusterview.WritePlacedBy(state, clusterview.Levels{Source: clusterview.FromConstraints})
	if got, found := clusterview.ReadPlacedBy(state.Clone()); !found || got.Source != clusterview.FromConstraints {
		t.Errorf("got %v, %t", got, found)
	}
}
