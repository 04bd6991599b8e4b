// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"
)

const casesFile = "../../../../manifests/monitoring/alerts_test.yaml"

// cases are in the format of promtool test rules, so that who has it can use it.
type cases struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []struct {
		Name        string         `yaml:"name"`
		Interval    model.Duration `yaml:"interval"`
		InputSeries []struct {
			Series, Values string
		} `yaml:"input_series"`
		AlertRuleTest []struct {
			EvalTime  model.Duration `yaml:"eval_time"`
			Alertname string         `yaml:"alertname"`
			ExpAlerts []struct {
				ExpLabels map[string]string `yaml:"exp_labels"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func readCases(t *testing.T) (*cases, map[string]rulefmt.Rule) {
	t.Helper()
	text, err := os.ReadFile(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	c := &cases{}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil {
		t.Fatalf("%s: %v", casesFile, err)
	}
	rules := make(map[string]rulefmt.Rule)
	for _, name := range c.RuleFiles {
		groups, errs := rulefmt.ParseFile(filepath.Join(filepath.Dir(casesFile), name), false, model.LegacyValidation, parse, slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				rules[r.Alert] = r
			}
		}
	}
	return c, rules
}

// TestAlerts wants every case to fire what it says and nothing else of that name, and
// every alert to fire in one case and to be silent in another in which there is something to see.
func TestAlerts(t *testing.T) {
	c, rules := readCases(t)
	fired, silent := make(map[string]bool), make(map[string]bool)
	for _, tc := range c.Tests {
		t.Run(tc.Name, func(t *testing.T) {
			h := newHistory()
			for _, in := range tc.InputSeries {
				of, values, err := parse.ParseSeriesDesc(in.Series + " " + in.Values)
				if err != nil {
					t.Fatalf("%s: %v", in.Series, err)
				}
				for i, v := range values {
					if !v.Omitted {
						h.add(of, time.Duration(i)*time.Duration(tc.Interval), v.Value)
					}
				}
			}
			for _, want := range tc.AlertRuleTest {
				rule, ok := rules[want.Alertname]
				if !ok {
					t.Errorf("there is no alert %s", want.Alertname)
					continue
				}
				var labels []string
				for _, alert := range want.ExpAlerts {
					labels = append(labels, written(alert.ExpLabels))
				}
				slices.Sort(labels)
				got := h.firing(t, rule, time.Duration(want.EvalTime), time.Duration(c.EvaluationInterval))
				if !slices.Equal(got, labels) {
					t.Errorf("%s fires at %s for\n%q, want\n%q", want.Alertname, want.EvalTime, got, labels)
				}
				if len(want.ExpAlerts) > 0 {
					fired[want.Alertname] = true
				} else if len(tc.InputSeries) > 0 {
					silent[want.Alertname] = true
				}
			}
		})
	}
	for name := range rules {
		if !fired[name] || !silent[name] {
			t.Errorf("%s: fires in a case: %v; is silent in a case with series: %v", name, fired[name], silent[name])
		}
	}
}

// firing returns the labels of the alerts that fire: those that were there at each
// evaluation, for as long as the rule says.
func (h *history) firing(t *testing.T, rule rulefmt.Rule, at, interval time.Duration) []string {
	t.Helper()
	var firing map[string]bool
	for then := at; then >= max(0, at-time.Duration(rule.For)); then -= interval {
		result, err := h.ask(rule.Expr, then)
		if err != nil {
			t.Fatal(err)
		}
		now := make(map[string]bool)
		for _, s := range result {
			labels := s.Metric.Map()
			delete(labels, model.MetricNameLabel)
			maps.Copy(labels, rule.Labels)
			if key := written(labels); firing == nil || firing[key] {
				now[key] = true
			}
		}
		firing = now
	}
	if at < time.Duration(rule.For) {
		return nil
	}
	return slices.Sorted(maps.Keys(firing))
}

func written(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", name, labels[name]))
	}
	return strings.Join(parts, ",")
}

// TestAlertsAreExplained wants each alert to say how bad it is and what to do.
func TestAlertsAreExplained(t *testing.T) {
	_, rules := readCases(t)
	for name, r := range rules {
		if s := r.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, s) {
			t.Errorf("%s: severity %q: it is critical, warning or info", name, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has no summary, or no description", name)
		}
		if !strings.HasPrefix(name, "Espalier") {
			t.Errorf("%s: whose alert it is must be in its name", name)
		}
	}
}
