// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// scoringOf returns what the arguments of a profile's scorers are, as far as they have scores decide about pods that prefer nothing themselves.
func scoringOf(f framework.Framework, configured []config.KubeSchedulerProfile) (s clusterview.Scoring) {
	for i := range configured {
		if configured[i].SchedulerName != f.ProfileName() {
			continue
		}
		for _, c := range configured[i].PluginConfig {
			switch args := c.Args.(type) {
			case *config.NodeAffinityArgs:
				s.PrefersNodes = args.AddedAffinity != nil && len(args.AddedAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 && scores(f, names.NodeAffinity)
			case *config.InterPodAffinityArgs:
				s.IgnoresTerms = args.IgnorePreferredTermsOfExistingPods
				s.IgnoresRequired = args.HardPodAffinityWeight == 0
			}
		}
	}
	s.IgnoresTerms = s.IgnoresTerms || !scores(f, names.InterPodAffinity)
	return s
}

// scores reports whether a profile scores nodes by a plugin.
func scores(f framework.Framework, plugin string) bool {
	return slices.ContainsFunc(f.ListPlugins().Score.Enabled, func(p config.Plugin) bool { return p.Name == plugin })
}
