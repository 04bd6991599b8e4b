// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/upstream"
	"github.com/espalier-scheduler/espalier/pkg/plugins/recordingbinder"
)

// bindings are, by profile, to how many nodes a pod is bound at most, and which bound pods get an event; all do where nothing is said. A profile
// without the plugin RecordingBinder has neither.
func bindings(profiles []upstream.Profile) (candidates map[string]int, announced map[string]func(*corev1.Pod) bool) {
	candidates, announced = make(map[string]int), make(map[string]func(*corev1.Pod) bool)
	for _, profile := range profiles {
		for _, plugin := range profile.PluginConfig {
			args, is := plugin.Args.(*config.RecordingBinderArgs)
			if !is {
				continue
			}
			candidates[profile.SchedulerName] = int(args.Candidates)
			if events := args.ScheduledEvents; events != config.ScheduledEventsAll {
				announced[profile.SchedulerName] = func(pod *corev1.Pod) bool { return recordingbinder.Announced(events, pod) }
			}
		}
	}
	return candidates, announced
}
