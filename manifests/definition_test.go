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
