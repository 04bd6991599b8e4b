// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// keyRules compiles the rules of the keys of a list of a policy's spec.
func keyRules(t *testing.T, list string) (programs []cel.Program) {
	t.Helper()
	definition, ok := objects(t, manifests.PolicyDefinition)[0].(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		t.Fatal("it holds no CustomResourceDefinition")
	}
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	if err != nil {
		t.Fatal(err)
	}
	env, err := base.Extend(cel.Variable("self", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	for _, rule := range spec.Properties[list].Items.Schema.Properties["topologyKey"].XValidations {
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
		t.Fatalf("the keys of %s have no rule", list)
	}
	return programs
}

// The definition lets pass what the schedulers read, and nothing else: each key has one spelling, and Docker's words are none.
func TestKeysOfPoliciesAreReadAlike(t *testing.T) {
	keys := []string{
		"rack", "Rack", "x.y/rack", "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type", "a_b", "a.b", "nodes", "x/node.name",
		"node.name", "NODE.Name", "node.labels.rack", "Engine.Labels.rack", "node.labels.x.y/rack", "engine.x", "node.x", "a b", "-a", "a-", "/a", "a/", "A.b/c", "a//b",
	}
	keys = append(keys, strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253)+"/b", strings.Repeat("a", 254)+"/b")
	for _, list := range []string{"levels", "domainLimits"} {
		programs := keyRules(t, list)
		for _, key := range keys {
			_, err := level.ParseKey(key)
			passes := true
			for _, program := range programs {
				ok, _, evalErr := program.Eval(map[string]any{"self": key})
				passes = passes && evalErr == nil && ok.Value() == true
			}
			if passes != (err == nil) {
				t.Errorf("%s: %q passes: %t, and is read with %v", list, key, passes, err)
			}
		}
	}
}
