// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/espalier-scheduler/espalier/internal/clusterview/allocations"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// specOf is the schema of the spec in a definition.
func specOf(t *testing.T, file string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	definition, ok := objects(t, file)[0].(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		t.Fatal("it holds no CustomResourceDefinition")
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// compiled compiles rules about an object, and about what it was before.
func compiled(t *testing.T, rules apiextensionsv1.ValidationRules) (programs []cel.Program) {
	t.Helper()
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	if err != nil {
		t.Fatal(err)
	}
	env, err := base.Extend(cel.Variable("self", cel.DynType), cel.Variable("oldSelf", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		ast, issues := env.Compile(rule.Rule)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program)
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
		definition, ok := objects(t, file)[0].(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			t.Fatal("it holds no CustomResourceDefinition")
		}
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
