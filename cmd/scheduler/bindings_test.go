// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"

	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/espalier-scheduler/espalier/apis/config/scheme"
)

// Each profile has its own: a profile that only names the plugin has its defaults, wherever it names it, and one without it has nothing.
func TestBindings(t *testing.T) {
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(`
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: named
  plugins: {bind: {enabled: [{name: RecordingBinder}], disabled: [{name: DefaultBinder}]}}
- schedulerName: multi
  plugins: {multiPoint: {enabled: [{name: RecordingBinder}]}}
- schedulerName: quiet
  plugins: {bind: {enabled: [{name: RecordingBinder}], disabled: [{name: DefaultBinder}]}}
  pluginConfig: [{name: RecordingBinder, args: {candidates: 10, scheduledEvents: "Off"}}]
- schedulerName: stock
`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	candidates, announced := bindings(obj.(*schedulerapi.KubeSchedulerConfiguration).Profiles)
	if want := map[string]int{"named": 3, "multi": 3, "quiet": 10}; !maps.Equal(candidates, want) {
		t.Errorf("candidates are %v, want %v", candidates, want)
	}
	if got := slices.Collect(maps.Keys(announced)); !slices.Equal(got, []string{"quiet"}) {
		t.Errorf("some events are left out in %v, want quiet", got)
	}
}
