// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
)

// withArgs gives SpreadTree arguments.
func withArgs(args string) string {
	return configuration + "  - {name: SpreadTree, args: {" + args + "}}\n"
}

func TestWrap(t *testing.T) {
	r := newRig(t.Context(), t)
	extenders := frameworkruntime.WithExtenders([]fwk.Extender{nil})
	for name, tc := range map[string]struct {
		configuration string
		opts          []frameworkruntime.Option
		gate          bool
		hinted        bool
		want          []string // the only sentence holds them all; none: there is none
	}{
		"as shipped":     {configuration: configuration, gate: true, hinted: true},
		"said so":        {configuration: withArgs("nodeHint: Enabled"), gate: true, hinted: true},
		"switched off":   {configuration: withArgs("nodeHint: Disabled"), gate: true},
		"without a tree": {configuration: strings.Replace(configuration, "- {name: SpreadTree, weight: 10000}", "", 1), gate: true},
		"without a gate": {configuration: configuration, want: []string{`profile "it"`, "all nodes", "OpportunisticBatching", "--feature-gates"}},
		"with extenders": {configuration: configuration, opts: []frameworkruntime.Option{extenders}, gate: true, want: []string{`profile "it"`, "extenders"}},
		"preferred nodes": {
			configuration: configuration + "  - {name: NodeAffinity, args: {addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: ssd, operator: Exists}]}}]}}}\n",
			gate:          true, want: []string{`profile "it"`, "addedAffinity"},
		},
		"one of many":     {configuration: strings.Replace(configuration, "10000", "1", 1), gate: true, want: []string{`profile "it"`, "SpreadTree", "weight is 1;", "above 1100"}},
		"scoring nothing": {configuration: strings.Replace(configuration, "score: {disabled: [", "score: {disabled: [{name: SpreadTree}, ", 1), gate: true, want: []string{"weight is 0;"}},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.OpportunisticBatching, tc.gate)
			profiles := profile.Map{"it": r.framework(tc.configuration, tc.opts...)}
			before := profiles["it"]
			without := wrap(r.logger, profiles, []schedulerapi.KubeSchedulerProfile{r.profile(tc.configuration)}, nil, plugins.NodeLocal())
			_, hinted := profiles["it"].(*hintingFramework)
			_, preempts := profiles["it"].(preemptingFramework)
			if hinted != tc.hinted || !hinted && preempts == (profiles["it"] == before) || !hinted && preempts != strings.Contains(tc.configuration, "SpreadTree, weight") {
				t.Errorf("it is a %T", profiles["it"])
			}
			if len(tc.want) == 0 {
				if len(without) > 0 {
					t.Errorf("said %q", without)
				}
				return
			}
			if len(without) != 1 {
				t.Fatalf("said %q", without)
			}
			for _, part := range tc.want {
				if !strings.Contains(without[0], part) {
					t.Errorf("%q does not say %q", without[0], part)
				}
			}
		})
	}
}

// The gate that hints need came with Kubernetes 1.35.
func TestNoHintsBefore135(t *testing.T) {
	r := newRig(t.Context(), t)
	featuregatetesting.SetFeatureGateEmulationVersionDuringTest(t, utilfeature.DefaultFeatureGate, version.MajorMinor(1, 34))
	profiles := profile.Map{"it": r.framework(configuration)}
	without := wrap(r.logger, profiles, []schedulerapi.KubeSchedulerProfile{r.profile(configuration)}, nil, plugins.NodeLocal())
	if len(without) != 1 || !strings.Contains(without[0], "upgrade the API server") || strings.Contains(without[0], "--feature-gates") {
		t.Errorf("said %q", without)
	}
}

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
