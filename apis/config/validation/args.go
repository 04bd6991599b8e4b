// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
)

// PluginArgs checks the arguments of whichever plugin of ours they are of. Those of
// other plugins are not its business.
func PluginArgs(path *field.Path, args runtime.Object) field.ErrorList {
	switch args := args.(type) {
	case *config.DomainLimitsArgs:
		return DomainLimitsArgs(path, args)
	case *config.FaultyNodeArgs:
		return FaultyNodeArgs(path, args)
	case *config.HostPortsArgs:
		return HostPortsArgs(path, args)
	case *config.NodeLifetimeArgs:
		return NodeLifetimeArgs(path, args)
	case *config.NodeSamplingArgs:
		return NodeSamplingArgs(path, args)
	case *config.PreferencesArgs:
		return PreferencesArgs(path, args)
	case *config.RecordingBinderArgs:
		return RecordingBinderArgs(path, args)
	case *config.SpreadTreeArgs:
		return SpreadTreeArgs(path, args)
	default:
		return nil
	}
}
