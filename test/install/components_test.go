// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// switches are the values of the chart that do what the components of kustomize do.
var switches = map[string]string{
	"active-active":         "scheduler.activeActive=true",
	"arbiter":               "controller.arbiter.enabled=true",
	"keep-disconnected":     "controller.keepDisconnected.enabled=true",
	"move-drained":          "controller.moveDrained.pods=Blocked",
	"node-claims":           "controller.nodeClaims.enabled=true",
	"rebalance":             "controller.rebalance.mode=Enabled",
	"renew-leases":          "controller.renewLeases.enabled=true",
	"repair-deletion-costs": "controller.repairDeletionCosts.mode=Repair",
	"restart-elsewhere":     "controller.restartElsewhere.mode=Enabled",
	"stagger-ends":          "controller.staggerEnds.nodes=pool=blue",
	"taint-suspects":        "controller.taintSuspects.effect=PreferNoSchedule",
	"tenants":               "tenants.enabled=true",
}

// TestChartHasTheRightsOfComponents wants each of these values to give the rights that its component gives, and no others: that none is
// missing and none too many is shown of the components (test/integration/rights).
func TestChartHasTheRightsOfComponents(t *testing.T) {
	folders, err := filepath.Glob(manifests + "/components/*")
	if err != nil || len(folders) != len(switches) {
		t.Fatalf("there are %v, and %d values: %v", folders, len(switches), err)
	}
	plain := rightsOf(t, decode(t, template(t, "espalier", "kube-system")))
	for folder, set := range switches {
		content, err := os.ReadFile(manifests + "/components/" + folder + "/rbac.yaml")
		if err != nil {
			t.Fatal(err)
		}
		want := append(rightsOf(t, decode(t, string(content))), plain...)
		got := rightsOf(t, decode(t, template(t, "espalier", "kube-system", "--set", set)))
		slices.Sort(want)
		slices.Sort(got)
		if got, want := slices.Compact(got), slices.Compact(want); !slices.Equal(got, want) {
			t.Errorf("%s gives\n%s\nand %s\n%s", set, strings.Join(got, "\n"), folder, strings.Join(want, "\n"))
		}
	}
}

// rightsOf are all rights that the roles among objects give, one verb of one resource each.
func rightsOf(t *testing.T, objects []object) (rights []string) {
	t.Helper()
	for _, kind := range []string{"ClusterRole", "Role"} {
		for _, role := range ofKind[rbacv1.ClusterRole](t, kind, objects) { // a Role has the same rules
			for _, rule := range role.Rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							rights = append(rights, fmt.Sprint(role.Namespace, " ", verb, " ", resource, ".", group, " ", rule.ResourceNames))
						}
					}
				}
			}
		}
	}
	return rights
}
