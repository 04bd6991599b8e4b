// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"
	"testing"
)

// lintable is a Deployment with some annotations on itself, and on its pods.
func lintable(own, pods, more string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {` + own + `}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {` + pods + `}}
    spec:
      schedulerName: espalier-scheduler
      containers: [{name: web, image: web}]
` + more
}

func TestLint(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 2)
	c.zone("b", 1)
	const constraints = `      topologySpreadConstraints:
      - {maxSkew: 3, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
`
	policy := func(spec string) string {
		return "apiVersion: placement.espalier.dev/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: p}\nspec: {podSelector: {}, " + spec + "}\n"
	}
	for name, tc := range map[string]struct {
		manifest                  string
		means, problems, warnings string // a part of the one there is, "" for none
	}{
		"an annotation": {lintable("", "espalier.dev/placement: pack=topology.kubernetes.io/zone", ""), "Pods fill one value of topology.kubernetes.io/zone", "", ""},
		"shares":        {lintable("", `espalier.dev/placement: "spread=topology.kubernetes.io/zone;weight.a=2;nodesWithoutKey=Exclude"`, ""), "nodes without it get none", "", ""},
		"in proportion": {lintable("", `espalier.dev/placement: "spread=topology.kubernetes.io/zone;share=Allocatable"`, ""), "in proportion to the CPU", "", ""},
		"malformed":     {lintable("", "espalier.dev/placement: sprawl=zone", ""), "", "unknown strategy", ""},
		"misspelt":      {lintable("", "espalier.dev/placment: spread=topology.kubernetes.io/zone", ""), "*", "", "The annotation espalier.dev/placment means nothing"},
		"misplaced":     {lintable("espalier.dev/placement: spread=zone", "", ""), "*", "", "means nothing on the Deployment itself"},
		"no such label": {lintable("", "espalier.dev/placement: spread=zon", ""), "Each value of zon gets as many pods as the others", "", "no node has this label"},
		"a constraint":  {lintable("", "", constraints), "Each value of topology.kubernetes.io/zone", "", "has maxSkew 3"},
		"of others":     {strings.Replace(lintable("", "", ""), "espalier-scheduler", "default-scheduler", 1), "", "", `Its schedulerName is "default-scheduler"`},
		"a policy":      {policy("levels: [{topologyKey: zone}]"), "Each value of zone", "", ""},
		"a bad policy":  {policy("levels: [{topologyKey: zone, shares: [{value: a, share: -1}]}]"), "", "share", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := LintManifest(t.Context(), &c.Snapshot, shipped(t), c.manifest(tc.manifest))
			if err != nil {
				t.Fatal(err)
			}
			o := l.Objects[0]
			for _, is := range []struct {
				what string
				got  []string
				want string
			}{{"means", o.Means, tc.means}, {"problems", o.Problems, tc.problems}, {"warnings", o.Warnings, tc.warnings}} {
				switch {
				case is.want == "*":
				case is.want == "" && len(is.got) > 0, is.want != "" && (len(is.got) != 1 || !strings.Contains(is.got[0], is.want)):
					t.Errorf("%s: %s are %q, want %q", fmt.Sprint(o.Object), is.what, is.got, is.want)
				}
			}
			if l.Problems() != len(o.Problems) {
				t.Errorf("%d problems are counted", l.Problems())
			}
		})
	}
}
