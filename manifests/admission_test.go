// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// admission is a ValidatingAdmissionPolicy, compiled as an API server does.
type admission struct {
	conditions  []cel.Program
	names       []string
	variables   map[string]cel.Program
	validations []cel.Program
	messages    []string
}

func compileAdmission(t *testing.T) *admission {
	t.Helper()
	policy, ok := objects(t, "admission/annotations.yaml")[0].(*admissionregistrationv1.ValidatingAdmissionPolicy)
	if !ok {
		t.Fatal("it holds no ValidatingAdmissionPolicy")
	}
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	if err != nil {
		t.Fatal(err)
	}
	env, err := base.Extend(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("variables", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	program := func(expression string) cel.Program {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		p, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a := &admission{variables: make(map[string]cel.Program)}
	for _, c := range policy.Spec.MatchConditions {
		a.conditions = append(a.conditions, program(c.Expression))
	}
	for _, v := range policy.Spec.Variables {
		a.names = append(a.names, v.Name)
		a.variables[v.Name] = program(v.Expression)
	}
	for _, v := range policy.Spec.Validations {
		a.validations, a.messages = append(a.validations, program(v.Expression)), append(a.messages, v.Message)
	}
	return a
}

// refuses returns why the policy refuses an object, "" if it does not.
func (a *admission) refuses(t fataler, object, oldObject any) string {
	for _, c := range a.conditions {
		applies, _, err := c.Eval(map[string]any{"object": object, "oldObject": oldObject})
		if err != nil {
			t.Fatalf("condition of %v: %v", object, err)
		}
		if applies.Value() != true {
			return ""
		}
	}
	variables := map[string]any{}
	input := map[string]any{"object": object, "oldObject": oldObject, "variables": variables}
	for _, name := range a.names {
		value, _, err := a.variables[name].Eval(input)
		if err != nil {
			t.Fatalf("variable %s of %v: %v", name, object, err)
		}
		variables[name] = value
	}
	for i, v := range a.validations {
		ok, _, err := v.Eval(input)
		if err != nil {
			t.Fatalf("validation %q of %v: %v", a.messages[i], object, err)
		}
		if ok.Value() != true {
			return a.messages[i]
		}
	}
	return ""
}

// annotated is an object of a kind whose pods have the annotations.
func annotated(kind string, annotations map[string]any) map[string]any {
	metadata := map[string]any{"annotations": annotations}
	template := map[string]any{"template": map[string]any{"metadata": metadata}}
	switch kind {
	case "Pod":
		return map[string]any{"kind": kind, "metadata": metadata, "spec": map[string]any{}}
	case "CronJob":
		return map[string]any{"kind": kind, "metadata": map[string]any{}, "spec": map[string]any{"jobTemplate": map[string]any{"spec": template}}}
	default:
		return map[string]any{"kind": kind, "metadata": map[string]any{}, "spec": template}
	}
}

// What the API server refuses at creation is what the scheduler could not read, no
// more and no less, but for lengths.
func TestAdmissionAgreesWithTheParser(t *testing.T) {
	a := compileAdmission(t)
	part := rapid.SampledFrom([]string{
		"spread", "Spread", "pack", "PACK", "sprd", "=", "=", "=", ",", ",", ";", ";", " ", "\u00a0", "\n",
		"zone", "node.name", "Node.Name", "node.labels.zone", "engine.labels.rack", "Engine.Labels.x/y", "node.id", "node.kubernetes.io/instance-type",
		"x.y/z", "X.y/z", "a b", "-a", "weight.a", "weight.", "weight.*", "Weight.b", "weight.a b", "missing", "MISSING", "Include", "exclude", "1", "0", "007", "1000000", "1000001", "+1", "70",
	})
	whole := rapid.SampledFrom([]string{
		"spread=zone", "pack=rack", "spread=node.name", "spread=node.labels.zone", "spread=zone;weight.a=70;weight.*=30", "spread=rack;nodesWithoutKey=Exclude", " pack = x/y ; missing = include ",
	})
	option := rapid.SampledFrom([]string{"", ";weight.a=1", ";weight.b=2", ";Weight.a=2", ";nodesWithoutKey=OwnDomain", ";nodesWithoutKey=Exclude", ";share=Allocatable", "; Share = allocatable", ";share=x", ";", " ;weight.*=9 "})
	check := func(t fataler, text string) {
		refused := a.refuses(t, annotated("Pod", map[string]any{clusterview.PlacementAnnotation: text}), nil)
		if _, err := level.Parse(text); (err != nil) != (refused != "") {
			t.Fatalf("%q: the parser says %v, the policy %q", text, err, refused)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var text string
		if rapid.Bool().Draw(t, "levels") {
			for i := range rapid.IntRange(1, 3).Draw(t, "n") {
				if i > 0 {
					text += ","
				}
				text += whole.Draw(t, "level") + option.Draw(t, "option") + option.Draw(t, "option")
			}
		} else {
			text = strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), "")
		}
		check(t, text)
	})
	check(t, strings.Repeat("spread=a,", 16)+"spread=b")
	check(t, "")
}

// fataler is what a test and a property test have in common.
type fataler interface{ Fatalf(string, ...any) }

func TestAdmissionLooksAtWhatIsWritten(t *testing.T) {
	a := compileAdmission(t)
	bad := map[string]any{clusterview.PlacementAnnotation: "sprd=zone"}
	for _, kind := range []string{"Pod", "Deployment", "CronJob"} {
		if a.refuses(t, annotated(kind, bad), nil) == "" {
			t.Errorf("%s: a malformed annotation is let pass", kind)
		}
		if why := a.refuses(t, annotated(kind, map[string]any{"example.com/x": "y"}), nil); why != "" {
			t.Errorf("%s: another's annotation is refused: %s", kind, why)
		}
		grown := maps.Clone(bad)
		grown["example.com/x"] = "y"
		if why := a.refuses(t, annotated(kind, grown), annotated(kind, bad)); why != "" {
			t.Errorf("%s: what was there before is refused: %s", kind, why)
		}
		if a.refuses(t, annotated(kind, bad), annotated(kind, map[string]any{})) == "" {
			t.Errorf("%s: an annotation that becomes malformed is let pass", kind)
		}
	}
	if why := a.refuses(t, map[string]any{"kind": "Pod", "metadata": map[string]any{}, "spec": map[string]any{}}, nil); why != "" {
		t.Errorf("a pod without annotations is refused: %s", why)
	}
}

// A stale annotation of a template, from before the policy, must not stop the
// controllers that make pods from it, whoever schedules those.
func TestRegression_AdmissionStopsAReplacement(t *testing.T) {
	a := compileAdmission(t)
	bad := map[string]any{clusterview.PlacementAnnotation: "sprd=zone", clusterview.Prefix + "stale": ""}
	for _, tc := range []struct {
		kind    string
		owner   map[string]any
		refused bool
	}{
		{"Pod", map[string]any{"kind": "ReplicaSet", "controller": true}, false},
		{"ReplicaSet", map[string]any{"kind": "Deployment", "controller": true}, false},
		{"Job", map[string]any{"kind": "CronJob", "controller": true}, false},
		{"Pod", map[string]any{"kind": "ReplicaSet", "controller": false}, true},
		{"Pod", map[string]any{"kind": "Fleet"}, true},
		{"StatefulSet", map[string]any{"kind": "Database", "controller": true}, true},
	} {
		object := annotated(tc.kind, bad)
		metadata, ok := object["metadata"].(map[string]any)
		if !ok {
			t.Fatal("no metadata")
		}
		metadata["ownerReferences"] = []any{tc.owner}
		if why := a.refuses(t, object, nil); (why != "") != tc.refused {
			t.Errorf("%s of %v: %q", tc.kind, tc.owner, why)
		}
	}
}

func TestAdmissionOfOtherAnnotations(t *testing.T) {
	a := compileAdmission(t)
	for _, tc := range []struct {
		key, value string
		ok         bool
	}{
		{"placment", "spread=zone", false},
		{"domain-limits", "kubernetes.io/hostname=1, example.com/rack = 2", true},
		{"domain-limits", "kubernetes.io/hostname", false},
		{"domain-limits", "node.id=1", false},
		{"domain-limits", "a=0", false},
		{"constraints", "node.role == worker, node.labels.disk!=ssd,node.ip==10.0.0.0/8", true},
		{"constraints", "node.role", false},
		{"constraints", "", false},
		{"platforms", "linux/amd64, windows/amd64", true},
		{"platforms", "linux/arm/v7", false},
		{"lease", "72h", true},
		{"lease", " 1h30m0.5s ", true},
		{"lease", "0", true},
		{"lease", "3d", false},
		{"lease", "72", false},
		{"lease", "", false},
		{"renew-lease", "true", true},
		{"allocation-priority", "0", true},
		{"allocation-priority", "+0100", true},
		{"allocation-priority", "101", false},
		{"allocation-priority", "-1", false},
		{"allocation-priority", "high", false},
		{"allocation-priority", "", false},
		// What Espalier writes: a pod may be made of one that ran.
		{"placed-by", "constraints spread=zone", true},
		{"deletion-ordinal", "3", true},
		{"cost-before-move", "3", true},
		{"removed-for-move", "m", true},
		{"unreachable-seconds", "300", true},
		{"made-evictable", "true", true},
		{"lease-expiry", "2026-01-31T12:00:00Z", true},
		{"identity", "0", true},
	} {
		why := a.refuses(t, annotated("Pod", map[string]any{clusterview.Prefix + tc.key: tc.value}), nil)
		if (why == "") != tc.ok {
			t.Errorf("%s: %q: %q", tc.key, tc.value, why)
		}
	}
}
