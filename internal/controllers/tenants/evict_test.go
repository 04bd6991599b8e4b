// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// capped lets an allocation run what it reserves.
func capped(s *placementv1alpha1.AllocationSpec) { s.MaxUtilizationPercent = new(int32(100)) }

func (r *rig) events() string {
	var all []string
	for len(r.said.Events) > 0 {
		all = append(all, <-r.said.Events)
	}
	return strings.Join(all, "\n")
}

// TV11: what runs beyond the maximum is evicted, the last first. A pod that a budget holds is tried again.
func TestVector_TV11_RunningPodsBeyondTheMaximum(t *testing.T) {
	r := newRig(t, partition("p", "p"), node("n1", "p", "64"), team("prod", "4", capped), team("dev", "2"),
		pod("p1", "prod", "n1"), pod("p2", "prod", "n1"), pod("p3", "prod", "n1"), pod("p4", "prod", "n1"), pod("waits", "prod", ""), pod("d1", "dev", "n1"), pod("d2", "dev", "n1"))
	r.held = []string{"p4"}
	r.mustLook()
	if got := r.pods(); got != "d1 d2 p1 p2 p4 waits" {
		t.Errorf("with a budget there are %s", got)
	}
	if got := r.events(); !strings.Contains(got, "maxUtilizationPercent") || !strings.Contains(got, "MustNotRun") || strings.Count(got, "\n") != 0 {
		t.Errorf("it says %q", got)
	}
	r.held = nil
	r.mustLook()
	if got := r.pods(); got != "d1 d2 p1 p2 waits" {
		t.Errorf("without it there are %s", got)
	}
}

// A pod that waits has nobody evicted by the maximum, however much it matters and however long it waits: no node may take it. If it is beyond the
// maximum itself, those that run stay within the reservation.
func TestAPodThatFitsNowhere(t *testing.T) {
	for cpu, want := range map[string]string{
		"4": "within 1, at 1 to 3, beyond p2@3 p1@2, next never@1",
		"5": "within 2, at 1 to 3, beyond , next never@3",
	} {
		first := func(p *corev1.Pod) {
			p.Annotations[clusterview.AllocationPriorityAnnotation] = "100"
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		r := newRig(t, partition("p", "p"), node("n1", "p", "64"), team("prod", "4", capped), pod("p1", "prod", "n1"), pod("p2", "prod", "n1"), pod("never", "prod", "", first))
		r.mustLook()
		if got := r.pods(); got != "never p1 p2" {
			t.Errorf("there are %s", got)
		}
		if got := say(r.allocation("prod")); !strings.HasSuffix(got, want) {
			t.Errorf("with %s CPUs the status says %s, want %s", cpu, got, want)
		}
	}
}

// TV23: a group that is made smaller loses those whose number it does not have any more, and one whose number another one has.
func TestVector_TV23_ShrinkingEvicts(t *testing.T) {
	group := func(s *placementv1alpha1.AllocationSpec) {
		s.IdentityGroups = []placementv1alpha1.IdentityGroup{{Name: "g", Count: new(int32(2))}}
	}
	r := newRig(t, partition("p", "p"), node("n1", "p", "64"), team("a", "20", group),
		pod("zero", "a", "n1", identity(0)), pod("one", "a", "n1", identity(1)), pod("two", "a", "n1", identity(2)), pod("again", "a", "n1", identity(1)),
		pod("bare", "a", "n1", identity(-1)), pod("waits", "a", "", identity(7)))
	r.mustLook()
	if got := r.pods(); got != "bare one waits zero" {
		t.Errorf("there are %s", got)
	}
	if got := r.events(); !strings.Contains(got, "identity 2") || !strings.Contains(got, `group "g"`) {
		t.Errorf("it says %q", got)
	}
}

// However many must not run, so many are evicted at a look.
func TestSoManyAtOnce(t *testing.T) {
	objects := []func(*rig) client.Object{partition("p", "p"), node("n1", "p", "64"), team("prod", "0", capped)}
	for i := range maxAtOnce + 5 {
		objects = append(objects, pod(fmt.Sprintf("p%02d", i), "prod", "n1"))
	}
	r := newRig(t, objects...)
	r.mustLook()
	if got := r.pods(); got != "p00 p01 p02 p03 p04" {
		t.Errorf("there are %s", got)
	}
	r.mustLook()
	if got := r.pods(); got != "" {
		t.Errorf("there are %s", got)
	}
}

// Pods that a budget holds keep nobody else: those before them are evicted at the next look, and they are tried again after that.
func TestHeldPodsKeepNobodyElse(t *testing.T) {
	objects := []func(*rig) client.Object{partition("p", "p"), node("n1", "p", "64"), team("prod", "0", capped), team("dev", "0", capped), pod("first", "prod", "n1")}
	for i := range maxAtOnce + 5 {
		objects = append(objects, pod(fmt.Sprintf("held%02d", i), "dev", "n1"))
	}
	r := newRig(t, objects...)
	for i := range maxAtOnce + 5 {
		r.held = append(r.held, fmt.Sprintf("held%02d", i))
	}
	r.mustLook()
	r.mustLook()
	if got := r.pods(); strings.Contains(got, "first") {
		t.Errorf("there are %s", got)
	}
	r.held = nil
	r.mustLook()
	r.mustLook()
	if got := r.pods(); got != "" {
		t.Errorf("without the budget there are %s", got)
	}
}
