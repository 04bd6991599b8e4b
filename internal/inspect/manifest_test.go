// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
		"one value":     {lintable("", "", strings.NewReplacer("maxSkew: 3", "maxSkew: 1", "topology.kubernetes.io/zone", "one").Replace(constraints)), "*", "", `over "one" spreads nothing: all 3 nodes with this label have the value "high"`},
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
	if e.Fits == nil || *e.Fits != 20 || len(e.Reasons) != 0 || len(opened.Notes) != 1 {
		t.Errorf("it fits on %v of %d nodes, and others refuse it: %v; notes %q", e.Fits, e.Nodes, e.Reasons, opened.Notes)
	}
}

// database adds a StatefulSet with volumes, and its first pods on nodes, with their claims unbound.
func (c *cluster) database(on ...string) {
	labels := map[string]string{"app": "db"}
	pods := template()
	pods.Labels = labels
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "db"}, Spec: appsv1.StatefulSetSpec{
		Template: pods, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
	}}
	c.Add(set)
	for i, node := range on {
		p := nextPod(&c.Snapshot, set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &set.Spec.Template, nil)
		number(p, set.Name, nil, i)
		p.UID, p.Spec.NodeName, p.Status.Phase = types.UID(p.Name), node, corev1.PodRunning
		c.Add(p)
	}
}

// The claims of the next pod come with it: it is drawn without them, and says so.
func TestClaimsThatAreNotThereYet(t *testing.T) {
	c := newCluster(t, 2, 1)
	c.database("a-1", "a-2")
	opened := c.open()
	tree, err := opened.Tree(t.Context(), Ref{"ns", "StatefulSet", "db"})
	must(t, err)
	if tree.All.Pods != 2 || len(tree.Notices) != 1 || !strings.Contains(tree.Notices[0], "The claim data-db-2 does not exist.") {
		t.Errorf("%d pods, notices %q", tree.All.Pods, tree.Notices)
	}
	b, err := opened.Balance(t.Context(), "ns", func(int, int) {})
	must(t, err)
	if len(b.Workloads) != 1 || b.Workloads[0].Pods != 2 || b.Workloads[0].Misplaced != 1 || b.Workloads[0].Note != "" {
		t.Errorf("it stands so: %+v", b.Workloads)
	}
}

// A pod with an ephemeral volume is explained, and one whose claim nobody makes is a problem of its manifest.
func TestClaimsOfPods(t *testing.T) {
	c := newCluster(t, 1)
	pods := template()
	pods.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}}}
	c.deployment("web", pods, "a-1")
	c.Add(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1-0-scratch"}})
	e, err := c.open().Explain(t.Context(), "ns", "web-1-0")
	if err != nil || len(e.Path) != 2 {
		t.Errorf("got %+v, %v", e, err)
	}
	const pod = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns, annotations: {espalier.dev/placement: spread=topology.kubernetes.io/zone}}
spec:
  schedulerName: espalier-scheduler
  containers: [{name: c, image: i}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: mine}}]
`
	const claim = `
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mine, namespace: ns}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: late}
`
	for text, want := range map[string]bool{pod: true, pod + claim: false} {
		l, err := LintManifest(t.Context(), &c.Snapshot, shipped(t), c.manifest(text))
		must(t, err)
		missing := len(l.Objects[0].Problems) > 0 && strings.Contains(l.Objects[0].Problems[0], `persistentvolumeclaim "mine" not found`)
		if missing != want {
			t.Errorf("problems %q, want a missing claim: %t", l.Objects[0].Problems, want)
		}
	}
}

// A claim of a manifest is bound before its pod is placed, unless its class waits for the pod. It is bound to the volume that it names.
func TestClaimsOfAManifest(t *testing.T) {
	class := func(name string, mode storagev1.VolumeBindingMode, isDefault string) *storagev1.StorageClass {
		return &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Annotations: map[string]string{snapshot.DefaultClassAnnotation: isDefault}},
			Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode,
		}
	}
	const text = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ns}
spec:
  schedulerName: espalier-scheduler
  containers: [{name: c, image: i}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: mine}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mine, namespace: ns}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, SPEC}
`
	for name, tc := range map[string]struct{ spec, isDefault, node, message string }{
		"no class, and no default":       {"volumeMode: Filesystem", "false", "a-1", ""},
		"no class, and one that waits":   {"volumeMode: Filesystem", "true", "", "didn't find available persistent volumes to bind"},
		"a class that does not wait":     {"storageClassName: now", "true", "a-1", ""},
		"a class that waits":             {"storageClassName: late", "false", "", "didn't find available persistent volumes to bind"},
		"a volume that is on no node":    {"storageClassName: late, volumeName: nowhere", "false", "", "didn't match PersistentVolume's node affinity"},
		"a volume that is not there yet": {"storageClassName: late, volumeName: other", "false", "a-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			c.Add(class("late", storagev1.VolumeBindingWaitForFirstConsumer, tc.isDefault))
			c.Add(class("now", storagev1.VolumeBindingImmediate, "false"))
			c.Add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}, Spec: corev1.PersistentVolumeSpec{
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gone", Operator: corev1.NodeSelectorOpExists}},
				}}}},
			}})
			s := c.simulate(strings.ReplaceAll(text, "SPEC", tc.spec), -1, Change{})
			if len(s.Pods) != 1 || s.Pods[0].Node != tc.node || !strings.Contains(s.Pods[0].Message, tc.message) {
				t.Errorf("it is placed as %+v", s.Pods)
			}
		})
	}
}
