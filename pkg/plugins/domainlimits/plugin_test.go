// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package domainlimits_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/domainlimits"
)

func TestNew(t *testing.T) {
	limits := func(property string, pods int64) *config.DomainLimitsArgs {
		return &config.DomainLimitsArgs{DefaultLimits: []config.DomainLimit{{TopologyKey: property, MaxPods: pods}}}
	}
	for _, tc := range []struct {
		name string
		args runtime.Object
		want []string // the error holds them all; none: there is no error
	}{
		{"no limits", &config.DomainLimitsArgs{}, nil},
		{"limits", limits("rack", 2), nil},
		{"args of another plugin", &config.SpreadTreeArgs{}, []string{domainlimits.Name, "*config.DomainLimitsArgs", "*config.SpreadTreeArgs"}},
		{"no args", nil, []string{domainlimits.Name, "*config.DomainLimitsArgs", "<nil>"}},
		{"bad limits", limits("node.id", 0), []string{domainlimits.Name, "defaultLimits[0].topologyKey", `"node.id"`, "defaultLimits[0].maxPods"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pl, err := domainlimits.New(t.Context(), tc.args, handle{snapshot: cache.NewEmptySnapshot()})
			plugintest.WantNew(t, domainlimits.Name, pl, err, tc.want...)
		})
	}
}

func TestSignPod(t *testing.T) {
	plain := newRig(t.Context(), t)
	if fragments, s := plain.pl.SignPod(t.Context(), web("p", "2", "").Obj()); !s.IsSuccess() || len(fragments) != 0 {
		t.Errorf("a pod without limits is signed %v, %v", fragments, s)
	}
	limited := newRig(t.Context(), t, config.DomainLimit{TopologyKey: "rack", MaxPods: 1})
	if fragments, s := limited.pl.SignPod(t.Context(), web("p", "2", "").OwnerReference("ds", daemonSet).Obj()); !s.IsSuccess() || len(fragments) != 0 {
		t.Errorf("a pod of a DaemonSet, which has no default limits, is signed %v, %v", fragments, s)
	}
	for name, try := range map[string]func() ([]fwk.SignFragment, *fwk.Status){
		"limits of its own": func() ([]fwk.SignFragment, *fwk.Status) {
			return plain.pl.SignPod(t.Context(), web("p", "2", "rack=1").Obj())
		},
		"default limits": func() ([]fwk.SignFragment, *fwk.Status) {
			return limited.pl.SignPod(t.Context(), web("p", "2", "").Obj())
		},
		"unreadable limits": func() ([]fwk.SignFragment, *fwk.Status) {
			return plain.pl.SignPod(t.Context(), web("p", "2", "rack").Obj())
		},
	} {
		if fragments, s := try(); s.Code() != fwk.Unschedulable || fragments != nil {
			t.Errorf("a pod with %s is signed %v, %v", name, fragments, s)
		}
	}
}
