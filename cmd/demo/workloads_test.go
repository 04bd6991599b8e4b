// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// TestWorkloadsSayWhatTheirFilesAsk keeps the demo from judging by other levels, or
// waiting for other numbers, than the examples ask for.
func TestWorkloadsSayWhatTheirFilesAsk(t *testing.T) {
	examples, err := manifests.Files.ReadDir("examples")
	if err != nil || len(examples) != len(workloads) {
		t.Fatalf("there are %d examples and %d workloads: %v", len(examples), len(workloads), err)
	}
	for _, w := range workloads {
		objects, err := rig.Decode(manifests.Files, "examples/"+w.file)
		must(t, err)
		pods := 0
		for _, obj := range objects {
			var annotations map[string]string
			switch kind := obj.GetKind(); kind {
			case "Pod":
				pods++
				annotations = obj.GetAnnotations()
			case w.kind:
				if obj.GetName() != w.name {
					t.Errorf("%s holds %q, not %q", w.file, obj.GetName(), w.name)
				}
				pods = number(obj, "replicas") + number(obj, "parallelism")
				annotations, _, _ = unstructured.NestedStringMap(obj.Object, "spec", "template", "metadata", "annotations")
			default:
				continue
			}
			if placement, ok := annotations["espalier.dev/placement"]; ok {
				if got := levelsOf(t, placement); !reflect.DeepEqual(got, w.levels) {
					t.Errorf("%s asks for %v, and is judged by %v", w.file, got, w.levels)
				}
			}
		}
		if pods != w.created {
			t.Errorf("%s has %d pods, and %d are waited for", w.file, pods, w.created)
		}
	}
}

func number(obj *unstructured.Unstructured, field string) int {
	n, _, _ := unstructured.NestedInt64(obj.Object, "spec", field)
	return int(n)
}

func levelsOf(t *testing.T, placement string) []evenness.Level {
	t.Helper()
	parsed, err := level.Parse(placement)
	must(t, err)
	var levels []evenness.Level
	for _, p := range parsed {
		l := evenness.Level{Name: p.Property.Label, Pack: p.Strategy == level.Pack, Exclude: p.NodesWithoutKey == level.Exclude}
		for _, weight := range p.Weights {
			if l.Weights == nil {
				l.Weights = map[string]int64{}
			}
			l.Weights[weight.Value] = weight.Share
		}
		levels = append(levels, l)
	}
	return levels
}
