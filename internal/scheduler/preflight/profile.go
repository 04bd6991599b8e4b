// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/upstream"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
	"github.com/espalier-scheduler/espalier/pkg/plugins/allocationorder"
	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
	"github.com/espalier-scheduler/espalier/pkg/plugins/hostports"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodelifetime"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodeplugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/platform"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// filtersOfPreFilters are the plugins of ours whose filters ask for what they have read before.
var filtersOfPreFilters = []string{allocationorder.Name, constraints.Name, domainlimits.Name, hostports.Name, nodelifetime.Name, nodeplugins.Name, platform.Name, preferences.Name}

// validateProfiles checks what kube-scheduler leaves to the plugins: their arguments,
// and that what one extension point needs of another is there. The plugins would only
// complain once the API server has been reached, or with every pod.
func validateProfiles(profiles []upstream.Profile) error {
	var errs field.ErrorList
	for i, profile := range profiles {
		path := field.NewPath("profiles").Index(i)
		for j, plugin := range profile.PluginConfig {
			errs = append(errs, validation.PluginArgs(path.Child("pluginConfig").Index(j).Child("args"), plugin.Args)...)
		}
		p := profile.Plugins
		for _, plugin := range slices.Concat(p.MultiPoint.Enabled, p.Score.Enabled) {
			if plugin.Name == spreadtree.Name && plugin.Weight < 0 {
				errs = append(errs, field.Invalid(path.Child("plugins"), plugin.Weight, "the weight of "+spreadtree.Name+" must not be negative: it would put the best node last"))
			}
		}
		if enabled(p, p.Score, spreadtree.Name) && !enabled(p, p.PreScore, spreadtree.Name) {
			errs = append(errs, field.Required(path.Child("plugins", "preScore", "enabled"), spreadtree.Name+" scores what it ranks there; enable it under multiPoint"))
		}
		for _, name := range filtersOfPreFilters {
			if enabled(p, p.Filter, name) && !enabled(p, p.PreFilter, name) {
				errs = append(errs, field.Required(path.Child("plugins", "preFilter", "enabled"), name+" filters by what it reads there, and would fail for every pod; enable it under multiPoint"))
			}
		}
	}
	return errs.ToAggregate()
}

// warningsAbout says what keeps a configuration that runs from spreading as evenly as it
// could, or from doing what it says, a sentence each.
func warningsAbout(c *upstream.Configuration) []string {
	var all []string
	for i, profile := range c.Profiles {
		p := profile.Plugins
		all = append(all, idleArgs(i, &profile)...)
		if !enabled(p, p.Score, spreadtree.Name) {
			continue
		}
		about := func(format string, args ...any) {
			all = append(all, fmt.Sprintf("profiles[%d] (%s): ", i, profile.SchedulerName)+fmt.Sprintf(format, args...))
		}
		if ours, others := weights(p); int64(ours) <= int64(others)*fwk.MaxScore {
			about("%s has weight %d, and the other scorers %d in all: they outvote it; give it a weight above %d",
				spreadtree.Name, ours, others, int64(others)*fwk.MaxScore)
		}
		if !enabled(p, p.PreFilter, preferences.Name) {
			about("%s is not enabled: there are no default levels, nodesWithoutKey=Exclude excludes nothing, and a pod whose placement cannot be read is tried again and again", preferences.Name)
		}
		if percentage := percentageOfNodes(c, &profile); percentage != 100 {
			about("percentageOfNodesToScore is %d, not 100: in a large cluster pods are spread over a sample of the nodes", percentage)
		}
	}
	return all
}

// idleArgs are the arguments of plugins that a profile does not enable: of a name that
// is misspelt kube-scheduler says nothing, and the plugin runs with its defaults.
func idleArgs(i int, profile *upstream.Profile) []string {
	names := profile.Plugins.Names()
	for _, plugin := range profile.Plugins.MultiPoint.Enabled {
		names = append(names, plugin.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var all []string
	for j, plugin := range profile.PluginConfig {
		if !slices.Contains(names, plugin.Name) && !hasStockArgs(plugin.Name) {
			all = append(all, fmt.Sprintf("profiles[%d] (%s): pluginConfig[%d] is of %q, which the profile does not enable, and does nothing; enable it, or name one of %s",
				i, profile.SchedulerName, j, syntax.Cut(plugin.Name), strings.Join(names, ", ")))
		}
	}
	return all
}

// hasStockArgs reports whether kube-scheduler gives a plugin arguments when nobody does,
// which it also does where a profile does not enable it.
func hasStockArgs(name string) bool {
	stock, err := upstream.DefaultConfiguration()
	return err == nil && slices.ContainsFunc(stock.Profiles[0].PluginConfig, func(c upstream.PluginConfig) bool { return c.Name == name })
}

// enabled reports whether a plugin is enabled at an extension point of a profile.
func enabled(p *upstream.Plugins, point upstream.PluginSet, name string) bool {
	names := func(plugins []upstream.Plugin, name string) bool {
		return slices.ContainsFunc(plugins, func(p upstream.Plugin) bool { return p.Name == name })
	}
	if names(point.Enabled, name) {
		return true
	}
	return names(p.MultiPoint.Enabled, name) && !names(point.Disabled, name) && !names(point.Disabled, "*")
}

// weights returns the weight of SpreadTree's score, and that of all others together.
func weights(p *upstream.Plugins) (ours, others int32) {
	seen := make(map[string]bool)
	for _, plugin := range slices.Concat(p.Score.Enabled, p.MultiPoint.Enabled) {
		if seen[plugin.Name] || !enabled(p, p.Score, plugin.Name) {
			continue
		}
		seen[plugin.Name] = true
		if plugin.Name == spreadtree.Name {
			ours = max(plugin.Weight, 1)
		} else {
			others += plugin.Weight
		}
	}
	return ours, others
}

// percentageOfNodes is a profile's own, or that of all; 0 lets kube-scheduler choose.
func percentageOfNodes(c *upstream.Configuration, profile *upstream.Profile) int32 {
	for _, p := range []*int32{profile.PercentageOfNodesToScore, c.PercentageOfNodesToScore} {
		if p != nil {
			return *p
		}
	}
	return 0
}
