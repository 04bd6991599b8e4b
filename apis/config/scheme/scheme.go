// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheme makes kube-scheduler know the plugins' arguments, and is the
// only place that touches its global schemes. Import it for that effect: then a
// KubeSchedulerConfiguration is decoded strictly, defaulted and converted with
// our arguments in it like any in-tree plugin's.
package scheme

import (
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	schedulerconfigv1 "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulerscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/espalier-scheduler/espalier/apis/config"
	configv1 "github.com/espalier-scheduler/espalier/apis/config/v1"
)

// Scheme is kube-scheduler's own, with the plugins' arguments in it.
var Scheme = schedulerscheme.Scheme

// Codecs decode with Scheme, strictly: an unknown field is an error.
var Codecs = schedulerscheme.Codecs

func init() {
	// The scheme that decodes files is filled already when this runs.
	utilruntime.Must(config.AddToScheme(Scheme))
	utilruntime.Must(configv1.AddToScheme(Scheme))

	// A second scheme, which kube-scheduler makes of its builders at first use,
	// gives defaults to plugins without a pluginConfig and converts arguments.
	// Asking for it here to add to it was rejected: it would be made at once, and
	// other plugin sets linked into the same binary would come too late for it.
	schedulerconfig.SchemeBuilder.Register(config.AddToScheme)
	schedulerconfigv1.SchemeBuilder.Register(configv1.AddToScheme)
}
