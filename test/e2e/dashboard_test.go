// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

// Every panel of the dashboard has something to show of a scheduler that works, fails and refuses, every metric that it has is explained to
// the operator, and the alerts look for what it has.
func TestDashboard(t *testing.T) {
	s := begin(t, faults.core())
	rig.Since(t, world.client, rig.HintsSince, "the fast path, which some panels are about")
	s.needsFailures()
	if world.controllerMetrics == "" {
		s.Skip("the metrics of the cluster's own controller are not reached from here")
	}
	controller := &metered{story: s, url: world.controllerMetrics}
	promcheck, err := rig.BinaryIn("../../_output/tools", "promcheck")
	s.must(err, "finding promcheck, which `make tools` builds")
	scheduler := s.withMetrics(s.ownFaults(map[string]any{}), "--leader-elect=true")
	s.policy("older", "app", placementv1alpha1.Level{TopologyKey: zoneLabel})
	s.policy("newer", "app", placementv1alpha1.Level{TopologyKey: rowLabel})
	s.nodes(4, 30, zone("zone-a"))
	bad := s.nodes(4, 30, zone("zone-b"))[3]
	s.fail("rejected", bad)
	lost := s.losses()
	s.deployed("app", 30, "")
	s.marked(lost, bad, "Deployment", "app", 30)
	only := s.nodes(1, 30, zone("zone-c"))[0]
	s.pod("first", s.template("ports", "", onHostPort(18090), onlyOn(only)))
	s.onNode("first", only)
	s.pod("second", s.template("ports", "", onHostPort(18090), onlyOn(only)))
	s.refusedFor("second", "didn't have free host port 18090/tcp")
	first := scheduler.page() + controller.page()

	// What has been there before goes on.
	s.scaledTo("app", 40)
	s.deployed("new", 10, "spread="+zoneLabel)
	ofScheduler, ofController := scheduler.page(), controller.page()
	s.explained(ofScheduler)
	s.alertable(ofScheduler, ofController, s.tenantsPage())
	second := ofScheduler + ofController
	pages := []string{filepath.Join(s.TempDir(), "first"), filepath.Join(s.TempDir(), "second")}
	s.must(os.WriteFile(pages[0], []byte(first), 0o600), "writing a page")
	s.must(os.WriteFile(pages[1], []byte(second), 0o600), "writing a page")
	out, err := exec.CommandContext(s.ctx, promcheck, "../../manifests/monitoring/dashboard.json", pages[0], pages[1]).CombinedOutput()
	if err != nil {
		s.Errorf("the dashboard: %v\n%s", err, out)
	}
	s.Logf("%s", out)
}

// explained wants docs/operations.md to have a row for every metric of a page that is ours, and for none that is not there.
func (s *story) explained(page string) {
	s.Helper()
	docs, err := os.ReadFile("../../docs/operations.md")
	s.must(err, "reading the documentation")
	names := func(text, pattern string) (names []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
		slices.Sort(names)
		return names
	}
	there, told := names(page, "(?m)^# HELP (espalier_[a-z_]+) \\[ALPHA\\]"), names(string(docs), "(?m)^\\| `(espalier_[a-z_]+)` \\|")
	if !slices.Equal(there, told) {
		s.Errorf("the scheduler has\n%q, and docs/operations.md rows of\n%q", there, told)
	}
}

// alertable wants pages to have the series that the alerts of each group look for: an alert on one
// that never was is silent, or fires, whatever happens. The Lease is this scheduler's.
func (s *story) alertable(pages ...string) {
	s.Helper()
	text, err := os.ReadFile("../../manifests/monitoring/alerts.yaml")
	s.must(err, "reading the alerts")
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	s.must(yaml.Unmarshal(text, &rules), "reading the alerts")
	lease := fmt.Sprintf("name=%q", s.scheduler)
	if leads := "leader_election_master_status{" + lease + "} 1"; !strings.Contains(pages[0], leads) {
		s.Errorf("the scheduler has no %s", leads)
	}
	selector, label := regexp.MustCompile(`((?:espalier|leader_election|scheduler)_[a-z_]+)(\{[^}]*\})?`), regexp.MustCompile(`[a-z]+="[^"]*"`)
	if len(rules.Groups) != len(pages) {
		s.Fatalf("there are %d groups of alerts, want %d", len(rules.Groups), len(pages))
	}
	for i, page := range pages {
		for _, rule := range rules.Groups[i].Rules {
			series := selector.FindAllStringSubmatch(strings.ReplaceAll(rule.Expr, `name="espalier-scheduler"`, lease), -1)
			if len(series) == 0 {
				s.Errorf("%s looks for nothing of ours: %s", rule.Alert, rule.Expr)
			}
			for _, one := range series {
				if _, is := unseen[one[1]]; is {
					continue
				}
				if labels := label.FindAllString(one[2], -1); !hasSeries(page, one[1], labels) {
					s.Errorf("%s looks for %s with %q, which nothing has", rule.Alert, one[1], labels)
				}
			}
		}
	}
}

// unseen are the metrics that no scheduler of this test has, with their labels: replicas that are active at once have the first, and one that cannot read
// a kind has the second. Their alerts have cases in alerts_test.yaml.
var unseen = map[string]string{
	"espalier_active_replica_placing": "",
	"espalier_unsynced_informers":     "`group`, `version`, `resource`, `reason`",
}

// TestUnseenMetrics wants the reference to have the metrics that these alerts look for as they look for them.
func TestUnseenMetrics(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	must(t, err)
	for metric, labels := range unseen {
		if row := "| `" + metric + "` | gauge | " + labels + " |"; !strings.Contains(string(reference), row) {
			t.Errorf("docs/reference/metrics.md has no row %q", row)
		}
	}
}

// hasSeries reports whether a page has a series of a metric with these labels.
func hasSeries(page, metric string, labels []string) bool {
	for line := range strings.Lines(page) {
		rest, found := strings.CutPrefix(line, metric)
		found = found && strings.IndexAny(rest, "{ ") == 0
		if found && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			return true
		}
	}
	return false
}

// onlyOn has a pod take one node of the story, by its label.
func onlyOn(node string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.NodeSelector[corev1.LabelHostname] = node }
}
