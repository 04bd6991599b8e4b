// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestCompose(t *testing.T) {
	got, err := Compose([]byte(`
version: "3.8"
services:
  web:
    image: web
    platform: linux/amd64
    ports: [{target: 80, published: 80, mode: host}, "443:443"]
    deploy:
      replicas: 6
      placement:
        max_replicas_per_node: 2
        constraints: [node.role == worker, "node.labels.disk==ssd"]
        preferences: [{spread: node.labels.zone}, {spread: node.labels.rack}]
  agent:
    deploy: {mode: global, placement: {preferences: [{spread: node.labels.zone}]}}
  plain: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].Kind != "DaemonSet" || len(got[0].Annotations) != 0 || len(got[0].Notes) != 1 || got[1].Kind != "Deployment" || len(got[1].Annotations)+len(got[1].Notes) != 0 {
		t.Fatalf("got %+v", got)
	}
	web := got[2]
	want := "map[espalier.dev/constraints:node.role == worker,node.labels.disk==ssd espalier.dev/domain-limits:kubernetes.io/hostname=2 " +
		"espalier.dev/placement:spread=node.labels.zone,spread=node.labels.rack espalier.dev/platforms:linux/amd64]"
	if fmt.Sprint(web.Annotations) != want || *web.Replicas != 6 || len(web.Notes) != 1 {
		t.Errorf("got %+v, want %s", web, want)
	}
}

// One service that cannot be converted takes none of the others with it.
func TestComposeBesideErrors(t *testing.T) {
	got, err := Compose([]byte("services: {a: {deploy: {mode: jobs}}, b: {}, c: {deploy: {mode: global-job}}, d: {deploy: {mode: replicated-job, replicas: 3}}}"))
	if len(got) != 2 || got[0].Name != "b" || got[1].Kind != "Job" || *got[1].Replicas != 3 || len(got[1].Notes) != 1 {
		t.Errorf("got %+v", got)
	}
	for _, want := range []string{`service a: mode "jobs"`, "service c: mode global-job"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestNoCompose(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "it has no services",
		"[]":               "this is no compose file",
		"kind: Deployment": "it has no services",
		"services: {web: {deploy: {mode: jobs}}}":                                             `mode "jobs"`,
		"services: {web: {deploy: {placement: {preferences: [{sprawl: node.labels.zone}]}}}}": `service web: level 1 "sprawl=node.labels.zone"`,
		"services: {web: {deploy: {placement: {constraints: [nonsense]}}}}":                   "service web: constraint 1",
		"services: {web: {platform: linux/arm/v7}}":                                           "service web: platform 1",
	} {
		if _, err := Compose([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
}

func TestConstraints(t *testing.T) {
	selector := st.MakeLabelSelector().Label("app", "web").Obj()
	pod := func() *st.PodWrapper { return st.MakePod().Namespace("ns").Name("p").Label("app", "web") }
	both := pod().SpreadConstraint(1, "zone", corev1.ScheduleAnyway, selector, nil, nil, nil, nil).SpreadConstraint(1, "rack", corev1.DoNotSchedule, selector, nil, nil, nil, nil)
	for name, tc := range map[string]struct {
		pod   *st.PodWrapper
		want  string
		notes int
	}{
		"one of each": {both, "spread=zone;nodesWithoutKey=LastResort", 2},
		"none":        {pod(), "", 1},
		"annotated":   {pod().Annotation("espalier.dev/placement", "spread=zone"), "", 1},
	} {
		c, err := Constraints("web", "Deployment", tc.pod.Obj())
		if err != nil || c.Annotations["espalier.dev/placement"] != tc.want || len(c.Notes) != tc.notes {
			t.Errorf("%s: got %+v, %v", name, c, err)
		}
	}
	if _, err := Constraints("web", "Deployment", pod().Annotation("espalier.dev/placement", "sprawl=zone").Obj()); err == nil {
		t.Error("a malformed annotation is converted")
	}
}
