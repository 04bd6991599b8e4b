// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// specOf is the schema of the spec in a definition.
func specOf(t *testing.T, file string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	definition := first[*apiextensionsv1.CustomResourceDefinition](t, file)
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// compiler compiles expressions about some variables as an API server does.
func compiler(t *testing.T, variables ...string) func(expression string) cel.Program {
	t.Helper()
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	must(t, err)
	for _, name := range variables {
		env, err = env.Extend(cel.Variable(name, cel.DynType))
		must(t, err)
	}
	return func(expression string) cel.Program {
		t.Helper()
		ast, issues := env.Compile(expression)
		must(t, issues.Err())
		p, err := env.Program(ast)
		must(t, err)
		return p
	}
}

// compiled compiles rules about an object, and about what it was before.
func compiled(t *testing.T, rules apiextensionsv1.ValidationRules) (programs []cel.Program) {
	t.Helper()
	compile := compiler(t, "self", "oldSelf")
	for _, rule := range rules {
		programs = append(programs, compile(rule.Rule))
	}
	if len(programs) == 0 {
		t.Fatal("there is no rule")
	}
	return programs
}

// passes reports whether an object passes all rules, and stays as it was.
func passes(programs []cel.Program, self any) bool {
	for _, program := range programs {
		if ok, _, err := program.Eval(map[string]any{"self": self, "oldSelf": self}); err != nil || ok.Value() != true {
			return false
		}
	}
	return true
}

// The definition lets pass what the schedulers read, and nothing else: each key has one spelling, and Docker's words are none.
func TestKeysOfPoliciesAreReadAlike(t *testing.T) {
	keys := []string{
		"rack", "Rack", "x.y/rack", "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type", "a_b", "a.b", "nodes", "x/node.name",
		"node.name", "NODE.Name", "node.labels.rack", "Engine.Labels.rack", "node.labels.x.y/rack", "engine.x", "node.x", "a b", "-a", "a-", "/a", "a/", "A.b/c", "a//b",
	}
	keys = append(keys, strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253)+"/b", strings.Repeat("a", 254)+"/b")
	for _, list := range []string{"levels", "domainLimits"} {
		programs := compiled(t, specOf(t, manifests.PolicyDefinition).Properties[list].Items.Schema.Properties["topologyKey"].XValidations)
		for _, key := range keys {
			_, err := level.ParseKey(key)
			if is := passes(programs, key); is != (err == nil) {
				t.Errorf("%s: %q passes: %t, and is read with %v", list, key, is, err)
			}
		}
	}
}

// The definitions let pass the amounts that the schedulers read, wherever there is one, and no others. Of selectors they let pass the operators
// that there are.
func TestAmountsAndSelectorsAreReadAlike(t *testing.T) {
	amounts, operators := make(map[string][]string), make(map[string][]string)
	for _, kind := range []string{"allocations", "partitions"} {
		file := "crds/placement.espalier.dev_" + kind + ".yaml"
		definition := first[*apiextensionsv1.CustomResourceDefinition](t, file)
		everySchema(*definition.Spec.Versions[0].Schema.OpenAPIV3Schema, func(name string, s apiextensionsv1.JSONSchemaProps) {
			switch {
			case s.XIntOrString:
				amounts[s.Pattern] = append(amounts[s.Pattern], kind)
			case name == "operator":
				var known []string
				for _, value := range s.Enum {
					known = append(known, string(value.Raw))
				}
				operators[strings.Join(known, " ")] = append(operators[strings.Join(known, " ")], kind)
			}
		})
	}
	if len(operators) != 1 || len(operators[`"In" "NotIn" "Exists" "DoesNotExist"`]) != 4 {
		t.Errorf("the operators are %q", operators)
	}
	if len(amounts) != 1 {
		t.Fatalf("there are several patterns of amounts: %q", amounts)
	}
	for pattern := range amounts {
		passes := regexp.MustCompile(pattern)
		for _, text := range []string{
			"0", "4", "+4", "-4", "0.5", ".5", "5.", "500m", "8Gi", "1.5Gi", "1e6", "12E-3", "1e+99", "3E", "3Ei", "1e100", "1e1000000", "1e1.5", "1e.5", "1e", "e1", "", " 4", "1gi",
			strings.Repeat("9", 32), strings.Repeat("9", 33), "0." + strings.Repeat("3", 32), "0." + strings.Repeat("3", 33),
		} {
			err := allocations.CheckAmounts(map[string]any{"cpu": text})
			if is := passes.MatchString(text); is != (err == nil) {
				t.Errorf("%q passes: %t, and is read with %v", text, is, err)
			}
		}
	}
}

// everySchema calls a function for each property below a schema, and for the values of maps, whose name is "".
func everySchema(of apiextensionsv1.JSONSchemaProps, do func(name string, schema apiextensionsv1.JSONSchemaProps)) {
	for name, s := range of.Properties {
		do(name, s)
		everySchema(s, do)
	}
	if of.Items != nil && of.Items.Schema != nil {
		everySchema(*of.Items.Schema, do)
	}
	if of.AdditionalProperties != nil && of.AdditionalProperties.Schema != nil {
		do("", *of.AdditionalProperties.Schema)
		everySchema(*of.AdditionalProperties.Schema, do)
	}
}

// A Move names what its pod is of, and evicts a pod of a StatefulSet first. Moves of before pass as they did.
func TestMovesThatEvictFirst(t *testing.T) {
	programs := compiled(t, specOf(t, "crds/placement.espalier.dev_moves.yaml").XValidations)
	set := map[string]any{"name": "a", "uid": "a"}
	for name, tc := range map[string]struct {
		spec map[string]any
		want bool
	}{
		"of a ReplicaSet":                         {map[string]any{"replicaSet": set}, true},
		"of a ReplicaSet, evicted first":          {map[string]any{"replicaSet": set, "evictFirst": true}, true},
		"of a StatefulSet, evicted first":         {map[string]any{"statefulSet": set, "evictFirst": true}, true},
		"of a StatefulSet":                        {map[string]any{"statefulSet": set}, false},
		"of a StatefulSet, and not evicted first": {map[string]any{"statefulSet": set, "evictFirst": false}, false},
		"of nothing":                              {map[string]any{}, false},
		"of both":                                 {map[string]any{"replicaSet": set, "statefulSet": set, "evictFirst": true}, false},
		"one that stays":                          {map[string]any{"replicaSet": set, "reason": "Disconnect", "keep": "Original"}, true},
		"one that stays, evicted first":           {map[string]any{"replicaSet": set, "reason": "Disconnect", "keep": "Original", "evictFirst": true}, false},
	} {
		if tc.spec["reason"] == nil {
			tc.spec["reason"] = "Drain"
		}
		if is := passes(programs, tc.spec); is != tc.want {
			t.Errorf("%s: passes %t", name, is)
		}
	}
}

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	m.Run()
}

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
	policy := first[*admissionregistrationv1.ValidatingAdmissionPolicy](t, "admission/annotations.yaml")
	program := compiler(t, "object", "oldObject", "variables")
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
func (a *admission) refuses(t rapid.TB, object, oldObject any) string {
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

// What the API server refuses at creation is what the scheduler could not read, no more and no less, but for lengths.
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
	check := func(t rapid.TB, text string) {
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

// A stale annotation of a template, from before the policy, must not stop the controllers that make pods from it, whoever schedules those.
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
