// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
)

func TestHostPortsArgs(t *testing.T) {
	tooMany := make([]string, hostport.MaxRanges+1)
	for i := range tooMany {
		tooMany[i] = strconv.Itoa(i+1) + "/tcp"
	}
	for name, tc := range map[string]struct {
		reserved []string
		want     [][]string
	}{
		"none":     {nil, nil},
		"good":     {[]string{"22/tcp", " 8000-8010/UDP", "127.0.0.1:9100/tcp", "22/tcp"}, nil},
		"too many": {tooMany, [][]string{{"args.reserved", "257", "256"}}},
		"bad": {
			[]string{"22", "53/udp", "", "22/tcp,23/tcp"},
			[][]string{
				{"args.reserved[0]", `"22"`, "no protocol", "write a port as 22/tcp"},
				{"args.reserved[2]", "empty port"},
				{"args.reserved[3]", "unknown protocol", "use tcp, udp or sctp"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, validation.HostPortsArgs(field.NewPath("args"), &config.HostPortsArgs{Reserved: tc.reserved}), tc.want)
		})
	}
	ports, errs := validation.HostPorts(nil, []string{"80/tcp", "22/tcp", "80/TCP"})
	if got := hostport.Format(ports); len(errs) > 0 || got != "22/tcp,80/tcp" {
		t.Errorf("got %q, %v", got, errs.ToAggregate())
	}
}
