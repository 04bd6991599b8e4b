// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

// counts are the metrics of Espalier that only grow, by name and labels.
func counts(t *testing.T) map[string]float64 {
	t.Helper()
	values := make(map[string]float64)
	eachMetric(t, "espalier_", func(name string, m *dto.Metric) {
		switch {
		case m.GetCounter() != nil:
			values[name] = m.GetCounter().GetValue()
		case m.GetHistogram() != nil:
			values[name] = float64(m.GetHistogram().GetSampleCount())
		}
	})
	return values
}

// eachMetric calls a function for each metric whose name has a prefix, with the name and the labels after it.
func eachMetric(t *testing.T, prefix string, do func(name string, m *dto.Metric)) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		name, is := strings.CutPrefix(family.GetName(), prefix)
		if !is {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			do(name+"{"+strings.Join(labels, ",")+"}", m)
		}
	}
}

// unsteady are counters that say how often something is done which is done at once for all changes that have come by then. How many come in time
// is chance.
var unsteady = []string{"failure_record_writes_total", "allocation_order_duration_seconds"}

// moved are the counters that have moved since the last call, each by how much for which values of its labels.
func (g *goldenRun) moved() (lines []string) {
	now := counts(g.T)
	by := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		more := now[name] - g.counted[name]
		if more == 0 {
			continue
		}
		base, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		if slices.Contains(unsteady, base) {
			continue
		}
		what := fmt.Sprintf("+%v", more)
		for _, label := range strings.Split(labels, ",") {
			if _, value, _ := strings.Cut(label, "="); label != "profile="+g.profile {
				what += " " + value
			}
		}
		by[base] = append(by[base], strings.TrimSpace(what))
	}
	for _, base := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, base+" "+strings.Join(by[base], ", "))
	}
	g.counted = now
	return lines
}

// gauges writes down what metrics are now. The plugins of the section must have set them: they are those of the process.
func (g *goldenRun) gauges(title string, names ...string) {
	g.Helper()
	g.write(title, func() (lines []string) {
		eachMetric(g.T, "espalier_", func(name string, m *dto.Metric) {
			base, _, _ := strings.Cut(name, "{")
			if slices.Contains(names, base) && (!strings.Contains(name, "profile=") || strings.Contains(name, "profile="+g.profile)) {
				lines = append(lines, fmt.Sprintf("%v %s", m.GetGauge().GetValue(), name))
			}
		})
		return lines
	})
}
