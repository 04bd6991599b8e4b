// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/upstream"
)

// candidates are, by profile, to how many nodes a pod is bound at most. A profile without the plugin RecordingBinder has none.
func candidates(profiles []upstream.Profile) map[string]int {
	candidates := make(map[string]int)
	for _, profile := range profiles {
		for _, plugin := range profile.PluginConfig {
			if args, is := plugin.Args.(*config.RecordingBinderArgs); is {
				candidates[profile.SchedulerName] = int(args.Candidates)
			}
		}
	}
	return candidates
}
