// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// rules compiles the rules of a list of a policy's spec.
func rules(t *testing.T, list string) (programs []cel.Program) {
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
	for _, rule := range spec.Properties[list].XValidations {
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
	return programs
}

// A property that is named twice in two spellings passed the definition, and was
// refused by the schedulers.
func TestRegression_OnePropertyInTwoSpellings(t *testing.T) {
	spellings := []string{
		"rack", "node.labels.rack", "Engine.Labels.rack", "Rack", "name", "node.labels.name", "node.labels.node.name",
		"x.y/rack", "NODE.LABELS.x.y/rack", "node.name", "NODE.Name",
	}
	for _, list := range []string{"levels", "domainLimits"} {
		programs := rules(t, list)
		for _, a := range spellings {
			for _, b := range spellings {
				p, err := level.ParseProperty(a)
				q, err2 := level.ParseProperty(b)
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				if list == "levels" && p == (level.Property{}) && q != p {
					continue // node.name comes last
				}
				passes := true
				for _, program := range programs {
					ok, _, err := program.Eval(map[string]any{"self": []any{map[string]any{"property": a}, map[string]any{"property": b}}})
					passes = passes && err == nil && ok.Value() == true
				}
				if passes != (p != q) {
					t.Errorf("%s: %s and %s pass: %t", list, a, b, passes)
				}
			}
		}
	}
}
