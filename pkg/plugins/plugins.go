// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugins lists the plugins of Espalier, for the binary, the benchmarks
// and the tests alike.
package plugins

import (
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	_ "github.com/espalier-scheduler/espalier/apis/config/scheme" // lets the plugins' arguments be decoded
	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
	"github.com/espalier-scheduler/espalier/pkg/plugins/faultynode"
	"github.com/espalier-scheduler/espalier/pkg/plugins/hostports"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodeplugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/platform"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preassignedfirst"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// Registry returns every plugin of ours, by name.
func Registry() frameworkruntime.Registry {
	return frameworkruntime.Registry{
		constraints.Name:      constraints.New,
		domainlimits.Name:     domainlimits.New,
		faultynode.Name:       faultynode.New,
		hostports.Name:        hostports.New,
		nodeplugins.Name:      nodeplugins.New,
		platform.Name:         platform.New,
		preassignedfirst.Name: preassignedfirst.New,
		preferences.Name:      preferences.New,
		spreadtree.Name:       spreadtree.New,
	}
}
