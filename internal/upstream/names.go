// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/http"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/metrics/resources"
)

// Scheduler is a kube-scheduler that is made and does not run yet. What the command has of it
// goes by names of this package, which alone knows where they are.
type Scheduler = scheduler.Scheduler

// Configuration is what it is configured with.
type Configuration = config.KubeSchedulerConfiguration

// Profile is one of the profiles of a configuration.
type Profile = config.KubeSchedulerProfile

// Plugins are those of a profile by extension point.
type Plugins = config.Plugins

// PluginSet is the plugins of one extension point.
type PluginSet = config.PluginSet

// Plugin is one that is named in a PluginSet.
type Plugin = config.Plugin

// PluginConfig is the arguments of one plugin.
type PluginConfig = config.PluginConfig

// DefaultConfiguration returns the configuration of a kube-scheduler that is given none.
func DefaultConfiguration() (*Configuration, error) { return latest.Default() }

// ValidateConfiguration checks a configuration, but for the arguments of plugins.
func ValidateConfiguration(c *Configuration) error {
	if errs := validation.ValidateKubeSchedulerConfiguration(c); errs != nil {
		return errs
	}
	return nil
}

// ResourceMetrics serves what pods request, of those that a lister has.
func ResourceMetrics(pods corelisters.PodLister) http.Handler { return resources.Handler(pods) }
