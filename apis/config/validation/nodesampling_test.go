// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/apis/config"
)

func TestNodeSamplingArgs(t *testing.T) {
	good := config.NodeSamplingArgs{TopologyKey: "zone", GroupsBasisPoints: 10000, NodesBasisPoints: 1, Strategy: config.SamplingRandom, TimeoutMilliseconds: 100}
	if errs := NodeSamplingArgs(nil, &good); len(errs) > 0 {
		t.Error(errs)
	}
	for name, change := range map[string]func(*config.NodeSamplingArgs){
		"topologyKey":         func(a *config.NodeSamplingArgs) { a.TopologyKey = "a zone" },
		"groupsBasisPoints":   func(a *config.NodeSamplingArgs) { a.GroupsBasisPoints = 0 },
		"nodesBasisPoints":    func(a *config.NodeSamplingArgs) { a.NodesBasisPoints = 10001 },
		"strategy":            func(a *config.NodeSamplingArgs) { a.Strategy = "Best" },
		"timeoutMilliseconds": func(a *config.NodeSamplingArgs) { a.TimeoutMilliseconds = 0 },
	} {
		args := good
		change(&args)
		errs := PluginArgs(nil, &args)
		if len(errs) != 1 || !strings.Contains(errs[0].Field, name) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
