// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

const podManifest = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME", "namespace": "ns"},
"spec": {"schedulerName": "espalier-scheduler", "containers": [{"name": "c", "image": "i"}]}}`

// A list is what it has, as `kubectl get -o yaml` writes it.
func TestList(t *testing.T) {
	text := `{"apiVersion": "v1", "kind": "List", "items": [` + strings.ReplaceAll(podManifest, "NAME", "p") + "," + strings.ReplaceAll(podManifest, "NAME", "q") + `]}`
	m, err := ReadManifest(strings.NewReader(text), "default")
	if err != nil || len(m.Workloads) != 2 || m.Workloads[1].Name != "q" {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := ReadManifest(strings.NewReader(strings.ReplaceAll(text, `"image": "i"`, `"imagine": "i"`)), "default"); err == nil || !strings.Contains(err.Error(), "item 1") {
		t.Errorf("the error is %v", err)
	}
}

// A Pod that the cluster has, running or pending, is not placed once more.
func TestSimulateAPodThatIsThere(t *testing.T) {
	for node, want := range map[string]int{"a-1": 0, "": 1} { // the pending one is placed as such
		c := newCluster(t, 1)
		m := c.manifest(strings.ReplaceAll(podManifest, "NAME", "p"))
		there, _ := m.Workloads[0].next(&c.Snapshot)
		there.UID, there.Spec.NodeName, there.Status.Phase = "p", node, corev1.PodRunning
		if node == "" {
			there.Status.Phase = corev1.PodPending
		}
		c.Add(there)
		s := c.simulate(strings.ReplaceAll(podManifest, "NAME", "p"), -1, Change{})
		if len(s.Pods) != want || want == 1 && s.Pods[0].Why != WhyPending {
			t.Errorf("on %q it is placed as %+v", node, s.Pods)
		}
	}
}

// A namespace has the label with its name, and one that is there keeps its labels.
func TestNamespacesOfAManifest(t *testing.T) {
	c := newCluster(t)
	c.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "web", "tier": "1"}}})
	m := c.manifest(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"tier": "2"}}}` + "\n---\n" +
		`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}` + "\n---\n" + strings.ReplaceAll(podManifest, "NAME", "p"))
	changed := snapshot.Snapshot{Objects: m.beside(&c.Snapshot, c.Objects)}
	labels := make(map[string]map[string]string)
	for _, n := range snapshot.Of[*corev1.Namespace](&changed) {
		if labels[n.Name] != nil {
			t.Errorf("%s is there twice", n.Name)
		}
		labels[n.Name] = n.Labels
	}
	if shop := labels["shop"]; shop["team"] != "web" || shop["tier"] != "2" || labels["new"][corev1.LabelMetadataName] != "new" {
		t.Errorf("the labels are %v", labels)
	}
}

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
	c := newCluster(t, 2, 1)
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
			must(t, err)
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
