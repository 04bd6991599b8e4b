// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// What the command has of kube-scheduler, by names of this package, which alone knows where
// it is.
type (
	// Scheduler is a kube-scheduler that is made and does not run yet.
	Scheduler = scheduler.Scheduler
	// Configuration is what it is configured with, and Profile one of its profiles.
	Configuration = config.KubeSchedulerConfiguration
	Profile       = config.KubeSchedulerProfile
	// Plugins are those of a profile by extension point, PluginSet those of one, and
	// PluginConfig the arguments of one.
	Plugins      = config.Plugins
	PluginSet    = config.PluginSet
	Plugin       = config.Plugin
	PluginConfig = config.PluginConfig
)

// DefaultConfiguration returns the configuration of a kube-scheduler that is given none.
func DefaultConfiguration() (*Configuration, error) { return latest.Default() }

// ValidateConfiguration checks a configuration, but for the arguments of plugins.
func ValidateConfiguration(c *Configuration) error {
	if errs := validation.ValidateKubeSchedulerConfiguration(c); errs != nil {
		return errs
	}
	return nil
}
