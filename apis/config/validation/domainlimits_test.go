// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

// most is a limit of an argument.
func most(key string, pods int64) config.DomainLimit {
	return config.DomainLimit{TopologyKey: key, MaxPods: pods}
}

func TestDomainLimitsArgs(t *testing.T) {
	tooMany := make([]config.DomainLimit, limit.MaxLimits+1)
	for i := range tooMany {
		tooMany[i] = config.DomainLimit{TopologyKey: fmt.Sprintf("example.com/level-%d", i), MaxPods: 1}
	}
	for name, tc := range map[string]struct {
		limits []config.DomainLimit
		want   [][]string
	}{
		"none":              {nil, nil},
		"good":              {[]config.DomainLimit{most("kubernetes.io/hostname", 1), most("rack", 1000000)}, nil},
		"as many as may be": {tooMany[:limit.MaxLimits], nil},
		"too many":          {tooMany, [][]string{{"args.defaultLimits", "17", "16"}}},
		"no key":            {[]config.DomainLimit{most("", 1)}, [][]string{{"args.defaultLimits[0].topologyKey", "empty key"}}},
		"no number":         {[]config.DomainLimit{most("rack", 0)}, [][]string{{"args.defaultLimits[0].maxPods", "0", "from 1 to 1000000"}}},
		"everything of the second": {
			[]config.DomainLimit{most("zone", 1), most("node.id", -1)},
			[][]string{{"args.defaultLimits[1].topologyKey", `"node.id"`, "use the key of a node label"}, {"args.defaultLimits[1].maxPods", "-1", "from 1 to 1000000"}},
		},
		"a key twice": {
			[]config.DomainLimit{most("rack", 1), most("zone", 1), most("rack", 2)},
			[][]string{{"args.defaultLimits[2].topologyKey", `"rack"`, "limit 1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, validation.DomainLimitsArgs(field.NewPath("args"), &config.DomainLimitsArgs{DefaultLimits: tc.limits}), tc.want)
		})
	}
}

func TestLimits(t *testing.T) {
	got, errs := validation.Limits(nil, []config.DomainLimit{most("rack", 2), most("kubernetes.io/hostname", 1)})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	want := []limit.Limit{{Property: level.Property{Label: "rack"}, Pods: 2}, {Property: level.Property{Label: "kubernetes.io/hostname"}, Pods: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
