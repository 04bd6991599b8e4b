// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/template"
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
				ExpLabels      map[string]string `yaml:"exp_labels"`
				ExpAnnotations map[string]string `yaml:"exp_annotations"`
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
				alerts := make(map[string]string)
				for _, alert := range want.ExpAlerts {
					alerts[written(alert.ExpLabels)] = written(alert.ExpAnnotations)
				}
				got := h.firing(t, rule, time.Duration(want.EvalTime), time.Duration(c.EvaluationInterval))
				if diff := cmp.Diff(alerts, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s fires at %s with labels and annotations other than said (-want +got):\n%s", want.Alertname, want.EvalTime, diff)
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

// firing returns the alerts that fire, as annotations by labels: those that were there at each evaluation, for as long as the rule says.
func (h *history) firing(t *testing.T, rule rulefmt.Rule, at, interval time.Duration) map[string]string {
	t.Helper()
	if at < time.Duration(rule.For) {
		return nil
	}
	firing := h.alerts(t, rule, at)
	for then := at - interval; then >= at-time.Duration(rule.For); then -= interval {
		before := h.alerts(t, rule, then)
		maps.DeleteFunc(firing, func(labels, _ string) bool { _, there := before[labels]; return !there })
	}
	return firing
}

// alerts are those of one moment.
func (h *history) alerts(t *testing.T, rule rulefmt.Rule, at time.Duration) map[string]string {
	t.Helper()
	result, err := h.ask(rule.Expr, at)
	if err != nil {
		t.Fatal(err)
	}
	alerts := make(map[string]string)
	for _, s := range result {
		expand := func(text string) string {
			data := template.AlertTemplateData(s.Metric.Map(), nil, "", s)
			text = "{{$labels := .Labels}}{{$value := .Value}}" + text
			expanded, err := template.NewTemplateExpander(t.Context(), text, rule.Alert, data, model.Time(at.Milliseconds()), nil, nil, []string{"missingkey=error"}).Expand()
			if err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
			}
			return expanded
		}
		labels, annotations := s.Metric.Map(), make(map[string]string)
		delete(labels, model.MetricNameLabel)
		maps.Copy(labels, rule.Labels)
		for name, text := range rule.Annotations {
			annotations[name] = expand(text)
		}
		alerts[written(labels)] = written(annotations)
	}
	return alerts
}

func written(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", name, labels[name]))
	}
	return strings.Join(parts, ",")
}

// TestAlertsAreExplained wants each alert to say how bad it is and what to do, and docs/operations.md to have a row for each.
func TestAlertsAreExplained(t *testing.T) {
	_, rules := readCases(t)
	docs, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(Espalier[A-Za-z]+)` \\|").FindAllStringSubmatch(string(docs), -1) {
		told = append(told, m[1])
	}
	slices.Sort(told)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(rules)), told); diff != "" {
		t.Errorf("docs/operations.md has rows of other alerts (-alerts +rows):\n%s", diff)
	}
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
