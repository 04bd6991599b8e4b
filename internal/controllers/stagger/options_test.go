// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"good":                       {func(*Options) {}, ""},
		"a lifetime of nothing":      {func(o *Options) { o.Rule.Lifetime = 0 }, "0s is no time for which a node runs at most: use 1h0m0s to 8784h0m0s"},
		"longer at least than most":  {func(o *Options) { o.Rule.Least = 22 * day }, "528h0m0s is no time for which a node runs at least: use 0s to 504h0m0s"},
		"negative":                   {func(o *Options) { o.Rule.Least = -1 }, "-1ns is no time for which a node runs at least"},
		"drained for a second":       {func(o *Options) { o.DrainFor = time.Second }, "1s is no time for which the pods of a node are waited for: use 1m0s to 24h0m0s"},
		"none of a domain at a time": {func(o *Options) { o.Rule.PerDomain = 0 }, "0 is no bound of the nodes of a domain that end at once: use 1 to 1000"},
	} {
		o := options(t)
		tc.change(&o)
		err := o.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
