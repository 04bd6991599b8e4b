// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests is what an operator applies, as files and as bytes.
//
// The files are the single copy: the scheduler runs the profile that the
// Deployment mounts, and the demo and the tests apply the rights that an operator
// applies. A second copy in Go would sooner or later say something else.
package manifests

import "embed"

// SchedulerConfig is the shipped profile, a KubeSchedulerConfiguration in YAML.
// bin/espalier-scheduler runs it when it is started without --config.
//
//go:embed base/scheduler-config.yaml
var SchedulerConfig []byte

// TenantsConfig is the profile of the overlay tenants, under the same scheduler name.
//
//go:embed overlays/tenants/scheduler-config.yaml
var TenantsConfig []byte

// PolicyDefinition is the file in Files that installs PlacementPolicy.
const PolicyDefinition = "crds/placement.espalier.dev_placementpolicies.yaml"

// Files holds folders beside this file as they lie there.
//
//go:embed base/*.yaml components/*/rbac.yaml components/arbiter/webhook.yaml overlays/*/rbac.yaml examples/*.yaml crds/*.yaml admission/*.yaml
var Files embed.FS
