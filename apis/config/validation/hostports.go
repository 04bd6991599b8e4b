// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

// HostPortsArgs checks the arguments of the plugin HostPorts.
func HostPortsArgs(path *field.Path, args *config.HostPortsArgs) field.ErrorList {
	_, errs := HostPorts(path.Child("reserved"), args.Reserved)
	return errs
}

// HostPorts reads the ports of an argument. Where there are errors there are no ports.
func HostPorts(path *field.Path, in []string) (hostport.Set, field.ErrorList) {
	var errs field.ErrorList
	if len(in) > hostport.MaxRanges {
		return nil, append(errs, field.TooMany(path, len(in), hostport.MaxRanges))
	}
	var ports hostport.Set
	for i, text := range in {
		port, err := hostport.ParseRange(text)
		if err != nil {
			errs = append(errs, field.Invalid(path.Index(i), text, err.Error()))
			continue
		}
		ports = append(ports, port)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return ports.Union(nil), nil
}
