// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/plugins"
)

// The hints of all our plugins are narrow: nothing else than these events can help a pod
// that one of them has refused. And what is not understood must not leave it pending for ever.
func TestEventsToRegister(t *testing.T) {
	ctx, f := profile(t, cache.NewSnapshot(nil, nil))
	pod := st.MakePod().Namespace("ns").Name("p").UID("p").HostPort(80).
		Annotation(clusterview.PlacementAnnotation, "spread=zone;nodesWithoutKey=Exclude").
		Annotation(clusterview.ConstraintsAnnotation, "node.labels.disk==ssd").
		Annotation(clusterview.PlatformsAnnotation, "linux/arm64").
		Annotation(clusterview.LeaseAnnotation, "72h").
		Annotation(clusterview.DomainLimitsAnnotation, "rack=1").Obj()
	registered := make(map[string]int)
	logger, _ := ktesting.NewTestContext(t)
	for _, pl := range f.EnqueueExtensions() {
		name := pl.Name()
		if plugins.Registry()[name] == nil {
			continue
		}
		events, err := pl.EventsToRegister(ctx)
		must(t, err)
		registered[name] = len(events)
		for _, e := range events {
			if e.QueueingHintFn == nil || e.Event.Resource == fwk.WildCard || e.Event.ActionType == fwk.All {
				t.Errorf("%s: %v is registered without a hint of its own", name, e.Event)
				continue
			}
			var before, after any = nil, "no object"
			if e.Event.ActionType&^fwk.Delete == 0 {
				before, after = after, before
			}
			if got, err := e.QueueingHintFn(logger, pod, before, after); got != fwk.Queue || err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v: got %v, %v", name, e.Event, got, err)
			}
		}
	}
	want := map[string]int{
		"Constraints": 2, "DomainLimits": 3, "FaultyNode": 0, "HostPorts": 2, "NodeLifetime": 2, "NodePlugins": 5, "Platform": 2, "Preferences": 2, "SpreadTree": 0,
	}
	if !maps.Equal(registered, want) {
		t.Errorf("the plugins register %v events, want %v", registered, want)
	}
}

// TestEveryRefusalIsCounted wants a counter directly before each refusal of a filter: a
// reason that somebody adds would otherwise be missing from what an operator sees.
func TestEveryRefusalIsCounted(t *testing.T) {
	files, err := filepath.Glob("*/filter.go")
	if err != nil || len(files) < 6 {
		t.Fatalf("filters are in %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		lines, refusals := strings.Split(string(text), "\n"), 0
		for i, line := range lines {
			if !strings.Contains(line, "NewStatus(fwk.Unschedulable") {
				continue
			}
			refusals++
			if !strings.HasSuffix(lines[i-1], ".Inc()") {
				t.Errorf("%s:%d: it refuses, and nothing counts it: have refusal.CounterOf make a counter", file, i+1)
			}
		}
		if refusals == 0 {
			t.Errorf("%s refuses nothing", file)
		}
	}
}
