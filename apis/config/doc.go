// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +groupName=kubescheduler.config.k8s.io

// Package config holds the arguments of the plugins, as the plugins see them:
// decoded, defaulted, converted from whatever version the user wrote. The
// versioned types, which carry the documentation of every field, are in v1.
//
// Arguments live in kube-scheduler's own group and are named <Plugin>Args:
// kube-scheduler decodes a profile's pluginConfig strictly only into kinds of
// that name in that group, and hands anything else to the plugin undecoded.
package config
