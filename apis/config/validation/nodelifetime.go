// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
)

// NodeLifetimeArgs checks the arguments of the plugin NodeLifetime.
func NodeLifetimeArgs(path *field.Path, args *config.NodeLifetimeArgs) field.ErrorList {
	switch args.Leases {
	case config.LeasesDisabled, config.LeasesAnnotations, config.LeasesAnnotationsAndDeadlines:
		return nil
	}
	return field.ErrorList{field.NotSupported(path.Child("leases"), args.Leases,
		[]config.Leases{config.LeasesDisabled, config.LeasesAnnotations, config.LeasesAnnotationsAndDeadlines})}
}
