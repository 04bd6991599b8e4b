// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// right is one verb on one resource, as a role gives it; or, with neither, what a binding to a role of the cluster's own gives.
type right struct {
	question
	// names are the objects that it is for, "" for all.
	names string
	from  string
}

func (r right) String() string {
	if r.verb == "" {
		return r.from
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s %s", r.from, r.question, r.names), " ")
}

// authority is the cluster's own role for who reads which authority signs clients. It is in kube-system.
const authority = "extension-apiserver-authentication-reader"

// roleObjects are the objects of a file of rights.
func roleObjects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := rig.Decode(manifests.Files, file)
	must(t, err)
	return objects
}

// expand rewrites a rule to one for each verb of each resource.
func expand(from string, rules []rbacv1.PolicyRule) (rights []right, single []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, right{question{group, resource, verb}, strings.Join(rule.ResourceNames, " "), from})
					single = append(single, rbacv1.PolicyRule{
						APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: rule.ResourceNames,
					})
				}
			}
		}
	}
	return rights, single
}

// rulesOf are the rules of a role.
func rulesOf(t *testing.T, o *unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	var role rbacv1.ClusterRole // a Role has the same rules
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
	return role.Rules
}

// rightsIn are all rights that the objects give.
func rightsIn(t *testing.T, objects []*unstructured.Unstructured) []right {
	t.Helper()
	var all []right
	for _, o := range objects {
		switch o.GetKind() {
		case "Role", "ClusterRole":
			rights, _ := expand(o.GetName(), rulesOf(t, o))
			all = append(all, rights...)
		case "RoleBinding", "ClusterRoleBinding":
			if !ours(objects, o) {
				all = append(all, right{from: o.GetName()})
			}
		}
	}
	return all
}

// ours says whether the role that is bound is one of the objects.
func ours(objects []*unstructured.Unstructured, binding *unstructured.Unstructured) bool {
	role, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetName() == role && strings.HasSuffix(o.GetKind(), "Role")
	})
}

// grant applies the rights under another name and in the namespace of that name, but for one of them.
func grant(t *testing.T, objects []*unstructured.Unstructured, old, name string, without right) {
	t.Helper()
	for _, o := range objects {
		if without.verb == "" && o.GetName() == without.from {
			continue
		}
		o = o.DeepCopy()
		if o.GetKind() == "Role" || o.GetKind() == "ClusterRole" {
			rights, single := expand(o.GetName(), rulesOf(t, o))
			if i := slices.Index(rights, without); i >= 0 {
				single = slices.Delete(single, i, i+1)
			}
			setRules(t, o, single, old, name)
		}
		role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
		if o.GetNamespace() != "" && role != authority {
			o.SetNamespace(name)
		}
		o.SetName(strings.Replace(o.GetName(), old, name, 1))
		if role != "" {
			_ = unstructured.SetNestedField(o.Object, strings.Replace(role, old, name, 1), "roleRef", "name")
			_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"kind": "ServiceAccount", "namespace": name, "name": name}}, "subjects")
		}
		if err := cluster.applier.ApplyObject(t.Context(), o, name); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// renamed is an object's name for a program of another name, or for a scheduler of that name.
func renamed(object, old, name string) string {
	return strings.NewReplacer(old, name, rig.SchedulerName, name).Replace(object)
}

// setRules gives a role its rules, for objects of the other name.
func setRules(t *testing.T, o *unstructured.Unstructured, rules []rbacv1.PolicyRule, old, name string) {
	t.Helper()
	list := []any{}
	for i := range rules {
		for j, object := range rules[i].ResourceNames {
			rules[i].ResourceNames = slices.Clone(rules[i].ResourceNames)
			rules[i].ResourceNames[j] = renamed(object, old, name)
		}
		rule, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules[i])
		must(t, err)
		list = append(list, rule)
	}
	must(t, unstructured.SetNestedSlice(o.Object, list, "rules"))
}
