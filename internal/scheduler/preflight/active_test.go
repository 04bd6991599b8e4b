// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"slices"
	"strings"
	"testing"

	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/scheduler/replicas"
)

// --active-active keeps the pods of other replicas out of every profile, whatever else these let in.
func TestActiveActiveIsOfAllProfiles(t *testing.T) {
	const plugin = replicas.Name
	gates := func(p schedulerapi.KubeSchedulerProfile) (names []string) {
		for _, is := range p.Plugins.PreEnqueue.Enabled {
			names = append(names, is.Name)
		}
		return names
	}
	for name, args := range map[string][]string{
		"shipped":      nil,
		"a file":       {"--config=" + written(t, mine)},
		"no profile":   {"--config=" + written(t, head)},
		"two profiles": {"--config=" + written(t, head+"profiles: [{schedulerName: a, plugins: {preEnqueue: {disabled: [{name: '*'}], enabled: [{name: SchedulingGates}]}}}, {schedulerName: b}]")},
	} {
		t.Run(name, func(t *testing.T) {
			with, _ := configured(t, append(args, "--active-active")...)
			without, _ := configured(t, args...)
			for i := range with.Profiles {
				if got, want := gates(with.Profiles[i]), append(gates(without.Profiles[i]), plugin); !slices.Equal(got, want) {
					t.Errorf("profile %d lets in by %v, want %v", i, got, want)
				}
			}
			if len(with.Profiles) != len(without.Profiles) || len(with.Profiles) == 0 {
				t.Errorf("there are %d profiles, and %d without", len(with.Profiles), len(without.Profiles))
			}
		})
	}
}

func TestActiveActiveNeedsAConfigurationInForm(t *testing.T) {
	for profiles, want := range map[string]string{"{a: b}": "not a list", "[7]": "profiles[0]", "[{plugins: 7}]": "plugins"} {
		var config map[string]any
		if err := yaml.Unmarshal([]byte("profiles: "+profiles), &config); err != nil {
			t.Fatal(err)
		}
		if err := overlay(parsed(t, "--active-active"), config); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--active-active") {
			t.Errorf("%s: %v", profiles, err)
		}
	}
}
