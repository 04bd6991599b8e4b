// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"testing"

	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

func TestScoringOf(t *testing.T) {
	r := newRig(t.Context(), t)
	const prefers = "  - {name: NodeAffinity, args: {addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: ssd, operator: Exists}]}}]}}}\n"
	const requires = "  - {name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: ssd, operator: Exists}]}]}}}}\n"
	without := func(scorer string) string {
		return strings.Replace(configuration, "score: {disabled: [", "score: {disabled: [{name: "+scorer+"}, ", 1)
	}
	for name, tc := range map[string]struct {
		configuration string
		want          clusterview.Scoring
	}{
		"as shipped":               {configuration, clusterview.Scoring{}},
		"nodes are preferred":      {configuration + prefers, clusterview.Scoring{PrefersNodes: true}},
		"nodes are required":       {configuration + requires, clusterview.Scoring{}},
		"preferred and not scored": {without("NodeAffinity") + prefers, clusterview.Scoring{}},
		"required terms":           {configuration + "  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 0}}\n", clusterview.Scoring{IgnoresRequired: true}},
		"all terms":                {configuration + "  - {name: InterPodAffinity, args: {ignorePreferredTermsOfExistingPods: true}}\n", clusterview.Scoring{IgnoresTerms: true}},
		"terms are not scored":     {without("InterPodAffinity"), clusterview.Scoring{IgnoresTerms: true}},
	} {
		t.Run(name, func(t *testing.T) {
			configured := []schedulerapi.KubeSchedulerProfile{{SchedulerName: "another"}, r.profile(tc.configuration)}
			if got := scoringOf(r.framework(tc.configuration), configured); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
