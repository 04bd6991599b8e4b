// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugins lists the plugins of Espalier, for the binary, the benchmarks
// and the tests alike.
package plugins

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	_ "github.com/espalier-scheduler/espalier/apis/config/scheme" // lets the plugins' arguments be decoded
	"github.com/espalier-scheduler/espalier/pkg/plugins/allocationorder"
	"github.com/espalier-scheduler/espalier/pkg/plugins/constraints"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
	"github.com/espalier-scheduler/espalier/pkg/plugins/faultynode"
	"github.com/espalier-scheduler/espalier/pkg/plugins/hostports"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodelifetime"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodeplugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodesampling"
	"github.com/espalier-scheduler/espalier/pkg/plugins/platform"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preassignedfirst"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preferences"
	"github.com/espalier-scheduler/espalier/pkg/plugins/recordingbinder"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// Factory makes a plugin of its arguments.
type Factory = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error)

// Registry returns every plugin of ours, by name.
func Registry() map[string]Factory {
	return map[string]Factory{
		allocationorder.Name:  allocationorder.New,
		constraints.Name:      constraints.New,
		domainlimits.Name:     domainlimits.New,
		faultynode.Name:       faultynode.New,
		hostports.Name:        hostports.New,
		nodelifetime.Name:     nodelifetime.New,
		nodeplugins.Name:      nodeplugins.New,
		nodesampling.Name:     nodesampling.New,
		platform.Name:         platform.New,
		preassignedfirst.Name: preassignedfirst.New,
		preferences.Name:      preferences.New,
		recordingbinder.Name:  recordingbinder.New,
		spreadtree.Name:       spreadtree.New,
	}
}

// NodeLocal names the filters of ours that look at nothing but the pod and one node, so that
// what they said holds until the node changes. DomainLimits looks at pods on other nodes, and
// NodePlugins at objects that no node knows of. Constraints asks the informer about addresses,
// which package upstream knows of. NodeLifetime looks at the clock besides, and at Jobs: what it said of a pod's lease
// holds as time goes by, see clusterview.AddNeeds.
//
// What Preferences says depends on the cycle's levels as well, which the needs of a pod
// do not tell. That is no harm: the nodes that it refuses are those that the levels
// leave out, and these are not in the pod's tree, so that the filters are not asked about them.
// What AllocationOrder says depends on the nodes of the pod's allocation. It adds their name to the needs, and which Partitions and
// Allocations it is by.
func NodeLocal() []string {
	return []string{allocationorder.Name, constraints.Name, hostports.Name, nodelifetime.Name, platform.Name, preferences.Name}
}

// Single names the plugins that want one scheduler to place all pods: AllocationOrder has one order of them, and gives away the numbers of identity
// groups by what it has given itself.
func Single() []string { return []string{allocationorder.Name} }
