// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/controllertest"
)

func options() Options {
	return Options{Mode: Enabled, Schedulers: []string{"espalier-scheduler"}, AtOnce: 5, PerNode: 2, PerHour: 10, Quiet: time.Minute, NodeReady: time.Minute, PodAge: time.Minute}
}

func TestOptions(t *testing.T) {
	controllertest.Must(t, options().Validate())
	for want, change := range map[string]func(*Options){
		`"Maybe" is no mode: use DryRun, Enabled or ByPolicy`:            func(o *Options) { o.Mode = "Maybe" },
		"0 is no bound of Moves at once: use 1 to 1000":                  func(o *Options) { o.AtOnce = 0 },
		"1001 is no bound of Moves at once from one node: use 1 to 1000": func(o *Options) { o.PerNode = 1001 },
		"-1 is no bound of Moves in an hour: use 1 to 10000":             func(o *Options) { o.PerHour = -1 },
		"-1s is no time that a Deployment must be quiet: use 0s to 24h":  func(o *Options) { o.Quiet = -time.Second },
		"25h0m0s is no time that a node must be ready: use 0s to 24h":    func(o *Options) { o.NodeReady = 25 * time.Hour },
		"-1ns is no time that a pod must have lived: use 0s to 24h":      func(o *Options) { o.PodAge = -1 },
	} {
		o := options()
		change(&o)
		if err := o.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWindows(t *testing.T) {
	at := func(hour, minute int) time.Time { return time.Date(2026, 1, 1, hour, minute, 59, 0, time.UTC) }
	day, night := "09:30-17:00", "22:00-06:00"
	for _, tc := range []struct {
		windows []string
		now     time.Time
		open    bool
	}{
		{nil, at(3, 0), true},
		{[]string{day}, at(9, 29), false},
		{[]string{day}, at(9, 30), true},
		{[]string{day}, at(16, 59), true},
		{[]string{day}, at(17, 0), false},
		{[]string{night}, at(21, 59), false},
		{[]string{night}, at(22, 0), true},
		{[]string{night}, at(0, 0), true},
		{[]string{night}, at(6, 0), false},
		{[]string{day, night}, at(5, 0), true},
		{[]string{day, night}, at(20, 0), false},
		{[]string{day}, at(9, 30).In(time.FixedZone("", 3600)), true},
	} {
		var windows []Window
		for _, text := range tc.windows {
			w, err := ParseWindow(text)
			controllertest.Must(t, err)
			windows = append(windows, w)
		}
		if open(windows, tc.now) != tc.open {
			t.Errorf("%v at %s: want %t", tc.windows, tc.now, tc.open)
		}
	}
	for _, text := range []string{"", "-", "22:00", "22:00-", "22-06", "24:00-06:00", "22:60-23:00", "22:00-22:00", "06:00-6:00", "22:00-06:00-07:00", strings.Repeat("9", 1000)} {
		if w, err := ParseWindow(text); err == nil || !strings.Contains(err.Error(), "use HH:MM-HH:MM in UTC") || len(err.Error()) > 300 {
			t.Errorf("%.20q is read as %v, %v", text, w, err)
		}
	}
}

// A Deployment is quiet from when it is first seen as it is, and no longer when it changes.
func TestQuiet(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{UID: "d", Generation: 1}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3},
	}
	q := make(quiet)
	look := func(after time.Duration, want time.Duration) {
		t.Helper()
		if got := q.look(d, now.Add(after)); got != want {
			t.Errorf("after %s it has been quiet for %s, want %s", after, got, want)
		}
	}
	look(0, 0)
	look(time.Minute, time.Minute)
	d.Status.ReadyReplicas = 2
	look(2*time.Minute, 0)
	d.Status.ReadyReplicas = 3
	look(3*time.Minute, 0)
	look(4*time.Minute, time.Minute)
	d.Generation = 2
	look(5*time.Minute, 0) // the controller has not seen it
	d.Status.ObservedGeneration = 2
	look(6*time.Minute, 0)
	look(7*time.Minute, time.Minute)
	d.Spec.Paused = true
	look(8*time.Minute, 0)
	d.Spec.Paused = false
	look(9*time.Minute, 0)
	q.forget(now.Add(10 * time.Minute))
	look(11*time.Minute, 0)
}
