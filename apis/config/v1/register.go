// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// SchemeGroupVersion is version v1 of kube-scheduler's group.
var SchemeGroupVersion = schema.GroupVersion{Group: schedulerconfig.GroupName, Version: "v1"}

var (
	// SchemeBuilder holds this package's types, defaults and conversions only.
	// Package scheme brings them into kube-scheduler's schemes.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes, RegisterDefaults)
	// localSchemeBuilder is the name by which generated code finds the builder;
	// it registers the conversions there.
	localSchemeBuilder = &SchemeBuilder
	// AddToScheme adds this package's types, defaults and conversions to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&HostPortsArgs{},
		&DomainLimitsArgs{},
		&FaultyNodeArgs{},
		&NodeLifetimeArgs{},
		&NodeSamplingArgs{},
		&PreferencesArgs{},
		&RecordingBinderArgs{},
		&SpreadTreeArgs{},
	)
	return nil
}
