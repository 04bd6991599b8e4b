// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// hanging is a profile whose bindings take until they are let go.
type hanging struct {
	framework.Framework
	release chan struct{}
}

func (h *hanging) RunBindPlugins(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	<-h.release
	return nil
}

// paceWith is a paced scheduler of two profiles, with so many bindings under way.
func paceWith(t *testing.T, bindings int) (next func() time.Duration, release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	profiles := profile.Map{"one": &hanging{release: release}, "two": &hanging{release: release}}
	paced := Pace(profiles, func(klog.Logger) (framework.QueuedEntityInfo, error) { return nil, nil }) //nolint:nilnil // it is not looked at
	for i := range bindings {
		go profiles[[]string{"one", "two"}[i%2]].RunBindPlugins(t.Context(), nil, nil, "")
	}
	synctest.Wait()
	return func() time.Duration {
		begin := time.Now()
		if _, err := paced(klog.Background()); err != nil {
			t.Error(err)
		}
		return time.Since(begin)
	}, release
}

func TestPace(t *testing.T) {
	for _, tc := range []struct {
		name     string
		bindings int
		end      int // so many bindings, a millisecond apart
		want     time.Duration
	}{
		{"none", 0, 0, 0},
		{"few", most - 1, 0, 0},
		{"many, and one ends", most, 1, time.Millisecond},
		{"more, and one ends", most + 1, 1, atMost},
		{"more, and two end", most + 1, 2, 2 * time.Millisecond},
		{"many, and none ends", most, 0, atMost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next, release := paceWith(t, tc.bindings)
				defer close(release)
				go func() {
					for range tc.end {
						time.Sleep(time.Millisecond)
						release <- struct{}{}
					}
				}()
				if took := next(); took != tc.want {
					t.Errorf("the next pod came after %s, want %s", took, tc.want)
				}
			})
		})
	}
}
