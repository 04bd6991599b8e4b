// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodelifetime"
)

// noon is when the tests begin.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// at is a time of a clock that a test sets.
func at(now time.Time) *clocktesting.FakePassiveClock { return clocktesting.NewFakePassiveClock(now) }

// newPlugin has leases of annotations, by a clock.
func newPlugin(t testing.TB, clock *clocktesting.FakePassiveClock) *nodelifetime.NodeLifetime {
	t.Helper()
	return plugintest.New[*nodelifetime.NodeLifetime](t, nodelifetime.By(clock.Now), &config.NodeLifetimeArgs{Leases: config.LeasesAnnotations}, plugintest.NewCluster())
}

// leased is a pod with a lease; "" is none.
func leased(lease string) *st.PodWrapper {
	p := st.MakePod().Namespace("ns").Name("p").UID("p")
	if lease != "" {
		p.Annotation(clusterview.LeaseAnnotation, lease)
	}
	return p
}

// ending is a node with an end; "" is none.
func ending(name, end string) *corev1.Node {
	n := st.MakeNode().Name(name)
	if end != "" {
		n.Annotation(clusterview.ValidUntilAnnotation, end)
	}
	return n.Obj()
}

// in is a time of RFC 3339, so long after noon.
func in(d time.Duration) string { return noon.Add(d).Format(time.RFC3339) }

func TestNew(t *testing.T) {
	for name, tc := range map[string]struct {
		args runtime.Object
		want []string // the error holds them all; none: there is no error
	}{
		"nothing is a lease":     {&config.NodeLifetimeArgs{Leases: config.LeasesDisabled}, nil},
		"annotations":            {&config.NodeLifetimeArgs{Leases: config.LeasesAnnotations}, nil},
		"deadlines as well":      {&config.NodeLifetimeArgs{Leases: config.LeasesAnnotationsAndDeadlines}, nil},
		"args of another plugin": {&config.HostPortsArgs{}, []string{nodelifetime.Name, "*config.NodeLifetimeArgs", "*config.HostPortsArgs"}},
		"no args":                {nil, []string{nodelifetime.Name, "*config.NodeLifetimeArgs", "<nil>"}},
		"bad args":               {&config.NodeLifetimeArgs{Leases: "All"}, []string{nodelifetime.Name, "leases", `"All"`, `"Annotations"`}},
	} {
		t.Run(name, func(t *testing.T) {
			pl, err := nodelifetime.New(t.Context(), tc.args, plugintest.NewCluster())
			plugintest.WantNew(t, nodelifetime.Name, pl, err, tc.want...)
		})
	}
}

// Where nothing is a lease no pod is filtered, and nothing is watched.
func TestDisabledExtendsNothing(t *testing.T) {
	pl, err := nodelifetime.New(t.Context(), &config.NodeLifetimeArgs{Leases: config.LeasesDisabled}, nil) // which nobody asks for anything
	if err != nil {
		t.Fatal(err)
	}
	if _, is := pl.(fwk.PreFilterPlugin); is {
		t.Error("it has a PreFilter")
	}
	if _, is := pl.(fwk.FilterPlugin); is {
		t.Error("it has a Filter")
	}
	if _, is := pl.(fwk.ReservePlugin); is {
		t.Error("it has a Reserve")
	}
}

func TestSignPod(t *testing.T) {
	pl := newPlugin(t, at(noon))
	sign := func(lease string) fwk.SignFragment {
		t.Helper()
		fragments, status := pl.SignPod(t.Context(), leased(lease).Obj())
		if !status.IsSuccess() || len(fragments) != 1 {
			t.Fatalf("signed %v, %v", fragments, status)
		}
		return fragments[0]
	}
	if sign("72h") == sign("73h") || sign("72h") == sign("") {
		t.Error("pods with other leases are signed alike")
	}
	if sign("72h") != sign(" 4320m ") || sign("0s") != sign("") {
		t.Error("the same lease in other words is signed otherwise")
	}
	if fragments, status := pl.SignPod(t.Context(), leased("3d").Obj()); status.Code() != fwk.Unschedulable || fragments != nil {
		t.Errorf("a pod that cannot be read is signed %v, %v", fragments, status)
	}
}
