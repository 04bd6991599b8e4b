// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// withoutProfile are the alerts about what has no such label. Those about the Lease are
// told apart by its name.
var withoutProfile = []string{"EspalierSchedulerAbsent", "EspalierNoLeader", "EspalierPoliciesUnknown", "EspalierPolicyConflicts", "EspalierMovesStuck", "EspalierMovesBelowWanted", "EspalierAllocationsUnknown", "EspalierReservedPodsWait"}

var (
	ourMetric = regexp.MustCompile(`\b(?:espalier|scheduler)_[a-z_]+`)
	matched   = regexp.MustCompile(`\b(?:espalier|scheduler)_[a-z_]+\{profile=~"`)
)

// TestAlertsAreOfTheRelease wants the alerts of each of two releases to be about its own
// profiles, and to be the shipped ones otherwise: a Prometheus sees the metrics of both.
func TestAlertsAreOfTheRelease(t *testing.T) {
	content, err := os.ReadFile(manifests + "/monitoring/alerts.yaml")
	fatal(t, err)
	var spec monitoringv1.PrometheusRuleSpec
	fatal(t, yaml.UnmarshalStrict(content, &spec))
	shipped := expressions(spec)
	for release, tc := range map[string]struct {
		args           []string
		matcher, lease string
	}{
		"espalier": {nil, `profile=~"espalier-scheduler"`, "espalier-scheduler"},
		// What is counted for others is no profile of the release's.
		"batch": {
			[]string{"--set-json", `scheduler.profiles=[{"schedulerName":"batch.v1"},{"schedulerName":"pack"}]`, "--set", "controller.schedulerNames={espalier-scheduler}"},
			`profile=~"batch\\.v1|pack"`, "batch-espalier-scheduler",
		},
	} {
		t.Run(release, func(t *testing.T) {
			rendered := ruleOf(t, template(t, release, "espalier-system", append(tc.args, "--set", "prometheusRule.enabled=true")...))
			if got, want := slices.Sorted(maps.Keys(rendered)), slices.Sorted(maps.Keys(shipped)); !slices.Equal(got, want) {
				t.Fatalf("the alerts are %v, want %v", got, want)
			}
			for name, expr := range rendered {
				metrics, ours := len(ourMetric.FindAllString(expr, -1)), len(matched.FindAllString(expr, -1))
				if slices.Contains(withoutProfile, name) {
					metrics = 0
				}
				if ours != metrics || strings.Count(expr, tc.matcher) != metrics {
					t.Errorf("%s: %d of its metrics have to be matched by %s:\n%s", name, metrics, tc.matcher, expr)
				}
				plain := strings.NewReplacer("{"+tc.matcher+",", "{", "{"+tc.matcher+"}", "", `"`+tc.lease+`"`, `"espalier-scheduler"`).Replace(expr)
				if plain != shipped[name] {
					t.Errorf("%s: without what is the release's it is\n%s\nand not the shipped\n%s", name, plain, shipped[name])
				}
			}
		})
	}
}

// ruleOf is what the PrometheusRule among rendered objects asks, by alert.
func ruleOf(t *testing.T, rendered string) map[string]string {
	t.Helper()
	for _, o := range decode(t, rendered) {
		if o.GetKind() == "PrometheusRule" {
			rule := &monitoringv1.PrometheusRule{}
			fatal(t, yaml.UnmarshalStrict([]byte(text(t, o)), rule))
			return expressions(rule.Spec)
		}
	}
	t.Fatal("no PrometheusRule is rendered")
	return nil
}

func expressions(spec monitoringv1.PrometheusRuleSpec) map[string]string {
	all := make(map[string]string)
	for _, group := range spec.Groups {
		for _, rule := range group.Rules {
			all[rule.Alert] = rule.Expr.String()
		}
	}
	return all
}
