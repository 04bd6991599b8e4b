// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package stagger

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// Vector TV21 over three weeks: 40 nodes of the same age, in three zones. At most two are rebooted a day, never two of a zone at once, and none
// runs for more than 21 days and the time that the one before it takes. A controller that is restarted each day changes no end.
func TestVector_TV21_Wave(t *testing.T) {
	var objects []client.Object
	for i := range 40 {
		name := fmt.Sprintf("n%02d", i)
		objects = append(objects, blue(name, fmt.Sprint("zone-", i%3)), on("pod-of-"+name, name))
	}
	p := newPool(t, objects...)
	p.lookAt(newYear)
	first := p.ends()
	perDay := make(map[string]int)
	for _, end := range first {
		perDay[end]++
	}
	for end, n := range perDay {
		if n > 2 {
			t.Errorf("%d nodes end %s", n, end)
		}
	}
	if len(perDay) != 20 {
		t.Errorf("the nodes end on %d days, want 20: %v", len(perDay), perDay)
	}
	reboots, drained := make(map[string]int), make(map[string]bool)
	for now := newYear; now.Before(newYear.Add(22 * day)); now = now.Add(time.Hour) {
		if now.Hour() == 12 {
			p.restart(p.Options)
		}
		p.lookAt(now)
		out := make(map[string]int)
		for _, n := range p.nodes() {
			if _, is := outOfService(&n); !is {
				if end := n.Annotations[clusterview.ValidUntilAnnotation]; !drained[n.Name] && end != first[n.Name] {
					t.Fatalf("%v: node %s ends %s, and was to end %s", now, n.Name, end, first[n.Name])
				}
				continue
			}
			out[n.Labels[corev1.LabelTopologyZone]]++
			if !n.Spec.Unschedulable {
				t.Fatalf("%v: node %s is out of service and takes pods", now, n.Name)
			}
			switch {
			case !drained[n.Name]:
				// Its pod is moved within the hour.
				drained[n.Name] = true
				if err := p.api.Delete(t.Context(), on("pod-of-"+n.Name, n.Name)); err != nil {
					t.Fatal(err)
				}
			case n.Annotations[clusterview.RebootDueAnnotation] != "":
				reboots[now.Format(time.DateOnly)]++
				p.reboot(n.Name, "second")
			}
		}
		for zone, n := range out {
			if n > 1 {
				t.Fatalf("%v: %d nodes of %s are out of service", now, n, zone)
			}
		}
	}
	total := 0
	for date, n := range reboots {
		if total += n; n > 2 {
			t.Errorf("on %s %d nodes are rebooted", date, n)
		}
	}
	if total != 40 {
		t.Errorf("%d of 40 nodes were rebooted: %v", total, slices.Sorted(maps.Keys(reboots)))
	}
	for _, n := range p.nodes() {
		if n.Spec.Unschedulable || rebootDue(&n) != "False Rebooted" || n.Annotations[clusterview.ValidUntilAnnotation] == first[n.Name] {
			t.Errorf("node %s is left cordoned: %t, %s, until %s", n.Name, n.Spec.Unschedulable, rebootDue(&n), n.Annotations[clusterview.ValidUntilAnnotation])
		}
	}
}
