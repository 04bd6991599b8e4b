// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// rights say whether the service accounts of the scheduler may do in the whole cluster what this release does there. What is for one namespace,
// the Lease and the records of failures, is named by arguments, and not looked at.
func (c *Checks) rights(ctx context.Context) ([]Finding, error) {
	var roles rbacv1.ClusterRoleList
	var bindings rbacv1.ClusterRoleBindingList
	for _, list := range []client.ObjectList{&roles, &bindings} {
		err := c.API.List(ctx, list)
		if apierrors.IsForbidden(err) {
			return []Finding{{"rights of the scheduler", false, "not known", "ask for the right to list ClusterRoles and ClusterRoleBindings"}}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing ClusterRoles and their bindings: %w", err)
		}
	}
	rules := make(map[string][]rbacv1.PolicyRule)
	for i := range roles.Items {
		rules[roles.Items[i].Name] = roles.Items[i].Rules
	}
	accounts, known := c.accounts()
	var all []Finding
	for _, account := range accounts {
		var has []rbacv1.PolicyRule
		for i := range bindings.Items {
			if slices.ContainsFunc(bindings.Items[i].Subjects, func(s rbacv1.Subject) bool { return isOf(s, account) }) {
				has = append(has, rules[bindings.Items[i].RoleRef.Name]...)
			}
		}
		if has == nil && !known {
			continue // the scheduler runs as somebody else
		}
		f := Finding{"rights of ServiceAccount " + account.String(), true, "all that this release does in the whole cluster", ""}
		if ok, lacks := validation.Covers(has, c.Rights); !ok {
			f.OK, f.Found, f.Fix = false, "it may not "+rulesInWords(lacks), "apply the roles of the release that runs: with helm upgrade, or its manifests"
		}
		all = append(all, f)
	}
	return all, nil
}

// accounts are those that Deployments of the scheduler run as, and whether there are any. If not, they are the one of the manifests.
func (c *Checks) accounts() (all []types.NamespacedName, known bool) {
	for _, d := range snapshot.Of[*appsv1.Deployment](c.Snapshot) {
		if account := (types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.Template.Spec.ServiceAccountName}); d.Labels[appName] == schedulerApp && !slices.Contains(all, account) {
			all = append(all, account)
		}
	}
	if all != nil {
		return all, true
	}
	return []types.NamespacedName{{Namespace: "kube-system", Name: schedulerApp}}, false
}

// isOf reports whether a subject is a service account, or a group that it is in.
func isOf(s rbacv1.Subject, account types.NamespacedName) bool {
	if s.Kind == rbacv1.ServiceAccountKind {
		return s.Namespace == account.Namespace && s.Name == account.Name
	}
	groups := []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + account.Namespace}
	return s.Kind == rbacv1.GroupKind && slices.Contains(groups, s.Name)
}

// rulesInWords says what is not allowed: "list nodes, patch pods/status, and 3 more". Each rule is of one verb and one resource.
func rulesInWords(rules []rbacv1.PolicyRule) string {
	const most = 5
	var words []string
	for _, r := range rules {
		for _, verb := range r.Verbs {
			for _, resource := range r.Resources {
				for _, group := range r.APIGroups {
					words = append(words, verb+" "+strings.TrimSuffix(resource+"."+group, "."+corev1.GroupName))
				}
			}
		}
	}
	slices.Sort(words)
	more := ""
	if n := len(words) - most; n > 0 {
		words, more = words[:most], fmt.Sprintf(", and %d more", n)
	}
	return strings.Join(words, ", ") + more
}
