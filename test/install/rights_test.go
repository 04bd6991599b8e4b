// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

// record is the ConfigMap in which a profile keeps its history of failures.
type record struct{ namespace, name string }

// recordOf is that of a profile, nil if it keeps none.
func recordOf(profile schedulerapi.KubeSchedulerProfile) *record {
	for _, pc := range profile.PluginConfig {
		if args, ok := pc.Args.(*config.FaultyNodeArgs); ok && args.Record.Enabled {
			return &record{args.Record.Namespace, profile.SchedulerName + "-failures"}
		}
	}
	return nil
}

// rightsGoWithTheConfiguration installs the rights of a way, and asks the API server whether the scheduler may do what its configuration
// has it do: renew its Lease and keep the record of each profile, and may not touch any other ConfigMap.
func rightsGoWithTheConfiguration(t *testing.T, objects []object, cfg *schedulerapi.KubeSchedulerConfiguration, want string) {
	t.Helper()
	user := runsAs(t, objects)
	rights := []authorizationv1.ResourceAttributes{}
	for _, verb := range []string{"get", "update"} {
		rights = append(rights, authorizationv1.ResourceAttributes{
			Group: "coordination.k8s.io", Resource: "leases", Verb: verb,
			Namespace: cfg.LeaderElection.ResourceNamespace, Name: cfg.LeaderElection.ResourceName,
		})
	}
	var records []string
	for _, profile := range cfg.Profiles {
		if r := recordOf(profile); r != nil {
			records = append(records, r.namespace+"/"+strings.TrimSuffix(r.name, "-failures"))
			rights = append(rights, configMapRights(*r)...)
		}
	}
	if got := strings.Join(records, " "); got != want {
		t.Errorf("records are kept as %q, want %q", got, want)
	}
	defer grant(t, objects, user, rights)()
	for _, namespace := range []string{"accepted", "leases", "kube-system", "default"} {
		for _, name := range []string{"other", "espalier-scheduler-failures", "trellis-failures"} {
			refuses(t, user, record{namespace, name}, rights)
		}
	}
}

// peopleMayWritePolicies wants a way to give people their rights to policies, by the built-in roles: also
// one that has no controller, because the controller of another release may be there.
func peopleMayWritePolicies(t *testing.T, objects []object) {
	t.Helper()
	given := map[string]int{}
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" || !strings.Contains(fmt.Sprint(o.Object["rules"]), "placementpolicies") {
			continue
		}
		for _, role := range []string{"admin", "edit", "view"} {
			if o.GetLabels()["rbac.authorization.k8s.io/aggregate-to-"+role] == "true" {
				given[role]++
			}
		}
	}
	if want := map[string]int{"admin": 1, "edit": 1, "view": 1}; !maps.Equal(given, want) {
		t.Errorf("the roles that gather rights to policies are %v, want %v", given, want)
	}
}

func configMapRights(r record) []authorizationv1.ResourceAttributes {
	var rights []authorizationv1.ResourceAttributes
	for _, verb := range []string{"get", "patch", "create"} {
		rights = append(rights, authorizationv1.ResourceAttributes{Resource: "configmaps", Verb: verb, Namespace: r.namespace, Name: r.name})
	}
	return rights
}

// runsAs is the user that the scheduler of a way is for the API server.
func runsAs(t *testing.T, objects []object) authorizationv1.SubjectAccessReviewSpec {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "Deployment" && strings.HasSuffix(o.GetName(), "-scheduler") {
			account, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName")
			return authorizationv1.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:" + o.GetNamespace() + ":" + account,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + o.GetNamespace(), "system:authenticated"},
			}
		}
	}
	t.Fatal("no Deployment runs the scheduler")
	return authorizationv1.SubjectAccessReviewSpec{}
}

// grant installs the rights among the objects and wants them to be enough. What it returns takes them back.
func grant(t *testing.T, objects []object, user authorizationv1.SubjectAccessReviewSpec, rights []authorizationv1.ResourceAttributes) (revoke func()) {
	t.Helper()
	var stored []string
	for _, o := range objects {
		if o.GroupVersionKind().Group == "rbac.authorization.k8s.io" {
			stored = append(stored, text(t, o))
		}
	}
	all := strings.Join(stored, "---\n")
	// The API server hears of rights a moment after it has stored them, and of their end as well.
	become := func(want bool) {
		for _, right := range rights {
			err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
				return may(t, user, right) == want, nil
			})
			if err != nil {
				t.Errorf("whether %s may %s %s %s/%s is not %t: %v", user.User, right.Verb, right.Resource, right.Namespace, right.Name, want, err)
			}
		}
	}
	must(t, all, "kubectl", "apply", "--server-side", "-f", "-")
	become(true)
	return func() {
		must(t, all, "kubectl", "delete", "--wait", "-f", "-")
		become(false)
	}
}

// refuses wants a ConfigMap to be out of reach that is none of those in rights.
func refuses(t *testing.T, user authorizationv1.SubjectAccessReviewSpec, other record, rights []authorizationv1.ResourceAttributes) {
	t.Helper()
	for _, right := range configMapRights(other) {
		if !slices.Contains(rights, right) && may(t, user, right) {
			t.Errorf("%s may %s the ConfigMap %s/%s, which is no record of its", user.User, right.Verb, right.Namespace, right.Name)
		}
	}
}

// may asks the API server.
func may(t *testing.T, user authorizationv1.SubjectAccessReviewSpec, right authorizationv1.ResourceAttributes) bool {
	t.Helper()
	user.ResourceAttributes = &right
	review, err := cluster.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: user}, metav1.CreateOptions{})
	fatal(t, err)
	return review.Status.Allowed
}

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
		fatal(t, err)
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
			for _, r := range rig.Singly(role.Rules) {
				rights = append(rights, fmt.Sprint(role.Namespace, " ", r.Verbs[0], " ", r.Resources[0], ".", r.APIGroups[0], " ", r.ResourceNames))
			}
		}
	}
	return rights
}
