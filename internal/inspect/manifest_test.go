// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
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

func TestExplainPending(t *testing.T) {
	c := newCluster(t, 2)
	pod := func(name string) *st.PodWrapper {
		return st.MakePod().Namespace("ns").Name(name).UID(name).SchedulerName(ours)
	}
	c.Add(pod("large").Req(map[corev1.ResourceName]string{"cpu": "5"}).Obj())
	c.Add(pod("choosy").NodeSelector(map[string]string{"disk": "ssd"}).Obj())
	c.Add(pod("fine").Obj())
	c.Add(pod("hopeless").NodeSelector(map[string]string{"disk": "ssd"}).Req(map[corev1.ResourceName]string{"cpu": "5"}).Obj())
	c.Add(pod("foreign").SchedulerName("other").Obj())
	two := pod("two").Req(nil).Req(map[corev1.ResourceName]string{"cpu": "6"}).Obj()
	two.Spec.Containers = append([]corev1.Container{{Name: "first"}}, two.Spec.Containers...)
	c.Add(two)
	c.Add(pod("gated").SchedulingGates([]string{"example.com/quota"}).Obj())
	c.Add(st.MakeNode().Name("b-1").UID("b-1").Label("team", "other").Capacity(map[corev1.ResourceName]string{"cpu": "64", "pods": "10"}).Unschedulable(true).Obj())
	c.Add(pod("ended").Phase(corev1.PodFailed).Obj())
	c.Add(pod("leaving").Terminating().Obj())
	opened := c.open()
	for name, want := range map[string]string{
		"large":    "0 of 3, [Insufficient cpu node(s) were unschedulable], [{request 4 of cpu in place of 5 2}]",
		"choosy":   "0 of 3, [node(s) didn't match Pod's node affinity/selector node(s) were unschedulable], [{remove disk=ssd from nodeSelector 2}]",
		"fine":     "2 of 3, [node(s) were unschedulable], []",
		"hopeless": "0 of 3, [Insufficient cpu node(s) were unschedulable], []",
		"foreign":  "not asked of 3, [], []",
		"ended":    "not asked of 3, [], []",
		"leaving":  "not asked of 3, [], []",
		"two":      "0 of 3, [Insufficient cpu node(s) were unschedulable], [{request 4 of cpu in place of 6 2}]",
		"gated":    "not asked of 3, [], []",
	} {
		e, err := opened.Explain(t.Context(), "ns", name)
		must(t, err)
		var reasons []string
		for _, r := range e.Reasons {
			reasons = append(reasons, r.Reason)
		}
		fits := "not asked"
		if e.Fits != nil {
			fits = fmt.Sprint(*e.Fits)
		}
		if got := fmt.Sprintf("%s of %d, %v, %v", fits, e.Nodes, reasons, e.Helps); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if e, err := opened.Explain(t.Context(), "ns", "gated"); err != nil || !strings.Contains(e.Note, "example.com/quota") {
		t.Errorf("of a gated pod: %+v, %v", e, err)
	}
	if _, err := opened.Explain(t.Context(), "ns", "none"); err == nil {
		t.Error("a pod that is not there is explained")
	}
}

// Leases are judged by the time of the snapshot, however old it is, and by the deadlines of its Jobs.
func TestExplainLease(t *testing.T) {
	c := newCluster(t)
	c.Taken = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, end := range map[string]time.Duration{"short": 2 * time.Hour, "long": 48 * time.Hour} {
		c.Add(st.MakeNode().Name(name).UID(name).Annotation(clusterview.ValidUntilAnnotation, c.Taken.Add(end).Format(time.RFC3339)).
			Capacity(map[corev1.ResourceName]string{"cpu": "4", "pods": "10"}).Obj())
	}
	c.Add(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}, Spec: batchv1.JobSpec{ActiveDeadlineSeconds: new(int64(24 * 60 * 60))}})
	pod := func(name string) *st.PodWrapper {
		return st.MakePod().Namespace("ns").Name(name).UID(name).SchedulerName(ours)
	}
	c.Add(pod("hour").Annotation(clusterview.LeaseAnnotation, "1h").Obj())
	c.Add(pod("week").Annotation(clusterview.LeaseAnnotation, "168h").Obj())
	c.Add(pod("day").OwnerReference("job", batchv1.SchemeGroupVersion.WithKind("Job")).Obj())
	leases := strings.Replace(string(shipped(t)), "leases: Disabled", "leases: AnnotationsAndDeadlines", 1)
	opened, err := Open(t.Context(), &c.Snapshot, []byte(leases), AllNodes)
	must(t, err)
	for name, want := range map[string]string{"hour": "2, []", "day": "1, []", "week": "0, [{remove the annotation espalier.dev/lease 2}]"} {
		e, err := opened.Explain(t.Context(), "ns", name)
		if err != nil || e.Fits == nil {
			t.Fatalf("%s: %+v, %v", name, e, err)
		}
		if got := fmt.Sprintf("%d, %v", *e.Fits, e.Helps); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// There is an answer for each node although the scheduler would draw a sample.
func TestExplainWithoutSamples(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 20)
	c.Add(st.MakePod().Namespace("ns").Name("choosy").UID("choosy").SchedulerName(ours).
		PodAffinityExists("app", corev1.LabelTopologyZone, st.PodAffinityWithPreferredReq).Obj())
	sampling := strings.Replace(string(shipped(t)), "      - name: Preferences\n", "      - name: Preferences\n      - name: NodeSampling\n", 1)
	opened, err := Open(t.Context(), &c.Snapshot, []byte(sampling), AllNodes)
	must(t, err)
	e, err := opened.Explain(t.Context(), "ns", "choosy")
	must(t, err)
	if e.Fits == nil || *e.Fits != 20 || len(e.Reasons) != 0 {
		t.Errorf("it fits on %v of %d nodes, and others refuse it: %v", e.Fits, e.Nodes, e.Reasons)
	}
}

// The way to a bound pod ends at its node.
func TestExplainBound(t *testing.T) {
	c := newCluster(t, 2, 2)
	c.deployment("web", template(), "a-1", "a-2", "b-2")
	e, err := c.open().Explain(t.Context(), "ns", "web-1-2")
	must(t, err)
	if len(e.Path) != 2 || e.Path[0].Chosen.Name != "b" || e.Path[1].Chosen.Name != "b-2" || e.Path[0].Others[0].Pods != 2 {
		t.Errorf("the path is %+v", e.Path)
	}
}
