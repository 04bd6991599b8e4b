// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
)

func TestLimits(t *testing.T) {
	rack := []limit.Limit{{Property: level.Property{Label: "rack"}, Pods: 2}}
	host := []limit.Limit{{Property: level.Property{Label: "kubernetes.io/hostname"}, Pods: 1}}
	annotated := func(text string) *st.PodWrapper {
		return st.MakePod().Annotation(clusterview.DomainLimitsAnnotation, text)
	}
	for _, tc := range []struct {
		name           string
		pod            *st.PodWrapper
		defaults, want []limit.Limit
	}{
		{"nothing said", st.MakePod(), nil, nil},
		{"defaults", st.MakePod(), rack, rack},
		{"annotation", annotated("kubernetes.io/hostname=1"), nil, host},
		{"the annotation replaces the defaults as a whole", annotated("kubernetes.io/hostname=1"), rack, host},
	} {
		got, err := clusterview.Limits(tc.pod.Obj(), nil, tc.defaults)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if d := gocmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: want -, got +:\n%s", tc.name, d)
		}
	}
	for text, part := range map[string]string{"rack=two": `"two"`, "": "no limits in"} {
		pod := st.MakePod().Obj()
		pod.Annotations = map[string]string{clusterview.DomainLimitsAnnotation: text}
		got, err := clusterview.Limits(pod, nil, rack)
		if err == nil || got != nil || !strings.HasPrefix(err.Error(), "annotation espalier.dev/domain-limits: ") || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestAppendDomains(t *testing.T) {
	node := st.MakeNode().Name("n1").Label("rack", "r1").Label("empty", "").Obj()
	limits, err := limit.Parse("rack=1,empty=1,zone=1,node.name=1")
	if err != nil {
		t.Fatal(err)
	}
	want := []placement.Value{{Text: "r1"}, {}, {Missing: true}, {Text: "n1"}}
	if d := gocmp.Diff(want, clusterview.AppendDomains(nil, node, limits)); d != "" {
		t.Error("want -, got +:\n" + d)
	}
}
