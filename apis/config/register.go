// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// SchemeGroupVersion is the internal version of kube-scheduler's group.
var SchemeGroupVersion = schema.GroupVersion{Group: schedulerconfig.GroupName, Version: runtime.APIVersionInternal}

var (
	// SchemeBuilder holds this package's types only. Package scheme brings them
	// into kube-scheduler's schemes.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds this package's types to a scheme.
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
