// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/espalier-scheduler/espalier/apis/config
// +k8s:defaulter-gen=TypeMeta
// +k8s:defaulter-gen-input=github.com/espalier-scheduler/espalier/apis/config/v1
// +groupName=kubescheduler.config.k8s.io

// Package v1 is the plugins' arguments as a user writes them, in a
// KubeSchedulerConfiguration of version kubescheduler.config.k8s.io/v1 under
// profiles[].pluginConfig[].args.
//
// A field is a pointer where its zero value is not its default, so that a zero
// that was written is kept: defaults fill what is absent, never what is there.
package v1
