// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodelifetime"
)

// Vector TV18 on annotations: a server is valid until 200, and leases are of 50.
func TestVector_TV18_Filter(t *testing.T) {
	clock := at(time.Unix(0, 0))
	pl, server := newPlugin(t, clock), ending("server", time.Unix(200, 0).UTC().Format(time.RFC3339))
	for now, fits := range map[int64]bool{100: true, 149: true, 150: false, 190: false, 250: false} {
		clock.SetTime(time.Unix(now, 0))
		if status := plugintest.Filter(t, pl, leased("50s").Obj(), server); status.IsSuccess() != fits {
			t.Errorf("at %d: %v", now, status)
		}
	}
}

func TestFilter(t *testing.T) {
	nodes := []*corev1.Node{
		ending("day", in(24*time.Hour)), ending("hour", in(time.Hour)), ending("over", in(-time.Hour)), ending("ever", ""), ending("odd", "tomorrow"),
	}
	for name, tc := range map[string]struct{ lease, want string }{
		"a lease of an hour":       {"59m59s", "day hour ever"},
		"of an hour to the second": {"1h", "day ever"},
		"longer than a day":        {"72h", "ever"},
		"as long as there is":      {"2562047h", "ever"},
		"with nanoseconds":         {"1ns", "day hour ever"},
	} {
		t.Run(name, func(t *testing.T) {
			var fit []string
			status, each := plugintest.FilterEach(t, newPlugin(t, at(noon)), leased(tc.lease).Obj(), nodes...)
			if !status.IsSuccess() {
				t.Fatal(status)
			}
			for i, status := range each {
				want := nodelifetime.ErrReasonEnds
				if nodes[i].Name == "odd" {
					want = nodelifetime.ErrReasonMalformed
				}
				switch {
				case status.IsSuccess():
					fit = append(fit, nodes[i].Name)
				case status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != want:
					t.Errorf("%s: %v", nodes[i].Name, status)
				}
			}
			if got := strings.Join(fit, " "); got != tc.want {
				t.Errorf("fits %q, want %q", got, tc.want)
			}
		})
	}
}

// Pods of others are none of its concern, whatever stands on nodes.
func TestPodsWithoutALease(t *testing.T) {
	resized := leased("72h").Node("hour").Obj()
	for name, pod := range map[string]*corev1.Pod{"without": leased("").Obj(), "with none": leased("0s").Obj(), "to be resized": resized} {
		if status := plugintest.Filter(t, newPlugin(t, at(noon)), pod, ending("odd", "tomorrow")); status.Code() != fwk.Skip {
			t.Errorf("%s: %v", name, status)
		}
	}
}

// The whole of what a user reads.
func TestMalformed(t *testing.T) {
	pl := newPlugin(t, at(noon))
	for lease, want := range map[string]string{
		"3d":  `annotation espalier.dev/lease: no duration "3d": use hours, minutes or seconds, such as 72h or 90m, and 0s for none`,
		"-1h": `annotation espalier.dev/lease: negative duration "-1h": use hours, minutes or seconds, such as 72h or 90m, and 0s for none`,
	} {
		plugintest.WantRefusal(t, plugintest.Filter(t, pl, leased(lease).Obj(), nil), want)
	}
	plugintest.WantNoExtensions(t, pl)
}

func TestMessage(t *testing.T) {
	got := plugintest.Message(t, newPlugin(t, at(noon)), leased("72h").Obj(),
		ending("n1", in(time.Hour)), ending("n2", in(-time.Hour)), ending("n3", "tomorrow"))
	const want = "0/3 nodes are available: 1 node(s) had a malformed annotation espalier.dev/valid-until, 2 node(s) ended before the pod's lease would."
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFilterWithoutPreFilter(t *testing.T) {
	plugintest.WantErrorWithoutPreFilter(t, newPlugin(t, at(noon)), leased("1h").Obj())
}

// A decision knows one moment: the lease that a pod is bound with begins when its nodes are looked at, however long that takes.
func TestReserve(t *testing.T) {
	clock := at(noon.Add(500 * time.Millisecond))
	pl, cycle := newPlugin(t, clock), framework.NewCycleState()
	if _, status := pl.PreFilter(t.Context(), cycle, leased("72h").Obj(), nil); !status.IsSuccess() {
		t.Fatal(status)
	}
	clock.SetTime(noon.Add(time.Hour))
	if status := pl.Reserve(t.Context(), cycle, leased("72h").Obj(), "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if got := clusterview.ReadBinding(cycle)[clusterview.LeaseExpiryAnnotation]; got != in(72*time.Hour) {
		t.Errorf("the lease ends %s, want %s", got, in(72*time.Hour))
	}
	without := framework.NewCycleState()
	if status := pl.Reserve(t.Context(), without, leased("").Obj(), "n"); !status.IsSuccess() || clusterview.ReadBinding(without) != nil {
		t.Errorf("a pod without a lease is bound with %v, %v", clusterview.ReadBinding(without), status)
	}
}

// What is remembered of one lease is remembered until the clock is put back.
func TestAClockThatIsPutBack(t *testing.T) {
	clock := at(noon)
	pl := newPlugin(t, clock)
	lease := func(text string) clusterview.Needs {
		t.Helper()
		cycle := framework.NewCycleState()
		if _, status := pl.PreFilter(t.Context(), cycle, leased(text).Obj(), nil); !status.IsSuccess() {
			t.Fatal(status)
		}
		return clusterview.AddedNeeds(cycle)
	}
	first := lease("72h")
	clock.SetTime(noon.Add(time.Hour))
	if later := lease("72h"); later != first || first == lease("73h") {
		t.Errorf("the leases are %q and %q an hour later", first, later)
	}
	clock.SetTime(noon)
	if back := lease("72h"); back == first {
		t.Error("what was refused by a clock that was fast is believed")
	} else if again := lease("72h"); again != back {
		t.Errorf("the lease is %q, and then %q", back, again)
	}
}
