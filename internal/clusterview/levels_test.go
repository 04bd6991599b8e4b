// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
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
		name     string
		pod      *st.PodWrapper
		defaults string
		want     string
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
			if err != nil {
				t.Fatal(err)
			}
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
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
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
