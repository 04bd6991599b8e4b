// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/espalier-scheduler/espalier/internal/commandtest"
	"github.com/espalier-scheduler/espalier/internal/pages"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

var update = flag.Bool("update", false, "write what the commands print into testdata")

// cluster writes a snapshot of a small cluster: zones of 2, 2 and 1 nodes, of which the last is full, and a Deployment
// whose pods are not even.
func cluster(t *testing.T) string {
	t.Helper()
	s := &snapshot.Snapshot{Taken: time.Unix(0, 0), Server: "v1.37.1"}
	s.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	capacity := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}
	for _, name := range []string{"a-1", "a-2", "b-1", "b-2", "c-1"} {
		zone, _, _ := strings.Cut(name, "-")
		s.Add(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "zone-" + zone}},
			Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	spread := corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{
		SchedulerName: "espalier-scheduler", TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread},
		Containers: []corev1.Container{{Name: "web", Image: "web", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}},
	}}
	defaulted := corev1.PodTemplate{Template: template}
	corev1defaults.SetObjectDefaults_PodTemplate(&defaulted)
	template = defaulted.Template
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}, Spec: appsv1.DeploymentSpec{Template: template}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", UID: "web-1", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
	}, Spec: appsv1.ReplicaSetSpec{Template: *template.DeepCopy()}}
	set.Spec.Template.Labels["pod-template-hash"] = "1"
	s.Add(d.DeepCopy())
	s.Add(set.DeepCopy())
	pod := func(name, node string, spec *corev1.PodSpec) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}, Spec: *spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		p.Spec.NodeName = node
		if strings.HasPrefix(name, "web-") {
			p.Labels = set.Spec.Template.Labels
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			p.Annotations = map[string]string{
				"espalier.dev/placed-by": "constraints spread=topology.kubernetes.io/zone;nodesWithoutKey=LastResort",
				"espalier.dev/decision":  "fast: zone zone-b=0 before zone-a=3; node b-1=0 tied with b-2=0",
			}
		}
		s.Add(p)
	}
	for i, node := range []string{"a-1", "a-1", "a-2", "b-1"} {
		pod(fmt.Sprint("web-", i), node, &template.Spec)
	}
	large := template.Spec.DeepCopy()
	large.TopologySpreadConstraints = nil
	large.Containers[0].Resources.Requests["cpu"] = resource.MustParse("4")
	pod("batch", "c-1", large)
	choosy := large.DeepCopy()
	choosy.NodeSelector = map[string]string{"disk": "ssd"}
	pod("choosy", "", choosy)
	return saved(t, s)
}

// saved is a file with a snapshot in it.
func saved(t *testing.T, s *snapshot.Snapshot) string {
	t.Helper()
	var out bytes.Buffer
	must(t, s.Write(&out))
	file := filepath.Join(t.TempDir(), "cluster.json")
	must(t, os.WriteFile(file, out.Bytes(), 0o600))
	return file
}

// run runs the command as a user would.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return commandtest.Run(t, newCommand("v0.0.0", genericiooptions.IOStreams{}), args...)
}

// What the commands print about the small cluster, against testdata. `go test ./cmd/kubectl-espalier -update` writes it anew.
func TestPrinted(t *testing.T) {
	file := cluster(t)
	for name, args := range map[string]string{
		"tree.txt":      "tree deployment/web",
		"tree.json":     "tree deploy/web -o json",
		"levels.txt":    "tree deploy/web --levels kubernetes.io/hostname",
		"tree.svg":      "tree deploy/web -o svg",
		"tree.dot":      "tree deploy/web -o dot",
		"balance.txt":   "balance",
		"balance.json":  "balance -A --uneven -o json",
		"lint.txt":      "lint -f testdata/web.yaml",
		"compose.txt":   "convert -f testdata/compose.yaml",
		"convert.txt":   "convert --from constraints -f testdata/web.yaml",
		"explain.txt":   "explain pod/web-3",
		"pending.txt":   "explain choosy",
		"pending.yaml":  "explain pod/choosy -o yaml",
		"simulate.txt":  "simulate -f testdata/web.yaml --replicas 9",
		"drain.txt":     "simulate --drain b-1",
		"simulate.json": "simulate -f testdata/web.yaml --cordon a-1,a-2 -o json",
		"nodes.txt":     "simulate -f testdata/web.yaml --replicas 8 --add-nodes 2,like=c-1",
	} {
		t.Run(name, func(t *testing.T) {
			full := append(strings.Fields(args), "-n", "shop")
			if !strings.HasPrefix(args, "convert") {
				full = append(full, "--snapshot", file)
			}
			got, err := run(t, full...)
			must(t, err)
			golden := filepath.Join("testdata", name)
			if *update {
				must(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			must(t, err)
			if got != string(want) {
				t.Errorf("%s prints\n%s\nwant\n%s", args, got, want)
			}
		})
	}
}

// What docs/kubectl-espalier.md shows is what the commands print.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubectl-espalier.md")
	must(t, err)
	page := pages.Page{Path: "docs/kubectl-espalier.md", Text: string(text)}
	file, shown := cluster(t), 0
	for _, block := range page.Blocks() {
		command, want, _ := strings.Cut(block.Text, "\n")
		args, is := strings.CutPrefix(command, "$ kubectl espalier ")
		if !is {
			continue
		}
		shown++
		got, err := run(t, append(strings.Fields(args), "--snapshot", file)...)
		if err != nil || got != want {
			t.Errorf("%s prints\n%s, %v\nand the page shows\n%s", command, got, err, want)
		}
	}
	if shown < 2 {
		t.Errorf("the page shows %d commands", shown)
	}
}

// Each mistake is told in one line, which says how to mend it.
func TestMistakes(t *testing.T) {
	file := cluster(t)
	other := filepath.Join(t.TempDir(), "other.json")
	must(t, os.WriteFile(other, []byte(`{"kind":"ClusterSnapshot","apiVersion":"snapshot.espalier.dev/v9"}`), 0o600))
	for args, want := range map[string]string{
		"tree":                                "wants one argument, a workload, such as deployment/web",
		"tree web":                            `"web" is no workload: write kind/name, such as deployment/web`,
		"tree job/web":                        `kind "job" is none of those whose pods are spread: deployment, statefulset, replicaset, replicationcontroller`,
		"tree deployment/none":                "there is no deployment/none",
		"tree deployment/web -o xml":          "--output=xml: write one of json, yaml, name, wide, svg, html, dot",
		"tree deployment/web --snapshot none": "none: no such file",
		"tree deployment/web --levels sprawl=zone":                 `level 1 "sprawl=zone"`,
		"tree deployment/web --levels ,":                           "level 1",
		"tree deployment/web --watch --snapshot x":                 "--watch: a snapshot does not change",
		"tree deployment/web --watch -o json":                      "--watch: it draws text again and again, and not json",
		"tree deployment/web --snapshot " + other:                  `this snapshot is of version "snapshot.espalier.dev/v9", and this command reads "snapshot.espalier.dev/v1alpha1": take it again`,
		"tree deployment/web --scheduler-config testdata/web.yaml": "the scheduler's configuration",
		"tree deployment/web --scheduler-config none":              "none: no such file",
		"explain pod/none":                                         "there is no pod/none",
		"explain deployment/web":                                   "\"deployment/web\" is no pod: write pod/NAME; `kubectl espalier tree` draws a workload",
		"simulate":                                                 "nothing to simulate: give a manifest with -f, or change the nodes with --drain",
		"simulate -f none.yaml":                                    "none.yaml: no such file",
		"simulate -f testdata/tree.txt":                            "testdata/tree.txt: document 1",
		"simulate -f testdata/web.yaml --drain x":                  `there is no node "x"`,
		"simulate -f testdata/web.yaml --replicas -3":              "--replicas=-3",
		"simulate -f testdata/web.yaml --replicas 1":               "has 4 pods, and is to have 1",
		"simulate -f testdata/web.yaml --add-nodes x":              "--add-nodes=x: it begins with how many, 1 to 10000: COUNT,like=NODE",
		"simulate -f testdata/web.yaml --add-nodes 1":              "--add-nodes=1: say which node they are like: COUNT,like=NODE",
		"simulate -f testdata/web.yaml --add-nodes 1,like=x":       `there is no node "x"`,
		"simulate -f testdata/malformed.yaml":                      `unknown field "spec.replica"`,
		"lint":                                                     "give a manifest with -f",
		"lint -f none.yaml":                                        "none.yaml: no such file",
		"convert -f testdata/tree.txt":                             "testdata/tree.txt",
		"convert --from constraints -f testdata/tree.txt":          "testdata/tree.txt: document 1",
		"nonsense": `unknown command "nonsense"`,
	} {
		t.Run(args, func(t *testing.T) {
			full := append(strings.Fields(args), "-n", "shop")
			if !strings.Contains(args, "--snapshot") && !strings.HasPrefix(args, "convert") {
				full = append(full, "--snapshot", file)
			}
			_, err := run(t, full...)
			commandtest.WantMistake(t, err, want)
		})
	}
}

// must ends the test if there is an error.
var must = placementtest.Must

// Every command takes every format; the names of what it is about are one a line.
func TestFormats(t *testing.T) {
	file := cluster(t)
	for args, names := range map[string]string{
		"tree deployment/web": "deployment/web\n",
		"explain pod/web-3":   "pod/web-3\n",
		"balance":             "deployment/web\n",
		"simulate -f testdata/web.yaml --drain c-1": "pod/choosy\npod/web-simulated-5\npod/web-simulated-6\n",
		"lint -f testdata/web.yaml":                 "deployment/web\n",
		"convert -f testdata/compose.yaml":          "daemonset/agent\ndeployment/web\n",
	} {
		for _, format := range append([]string{""}, forms...) {
			full := append(strings.Fields(args), "-n", "shop", "-o", format)
			if !strings.HasPrefix(args, "convert") {
				full = append(full, "--snapshot", file)
			}
			got, err := run(t, full...)
			if err != nil || got == "" {
				t.Errorf("%s -o %q: %v: %q", args, format, err, got)
			}
			if format == "name" && got != names {
				t.Errorf("%s: the names are %q, want %q", args, got, names)
			}
		}
	}
	for _, cmd := range newCommand("v0.0.0", genericiooptions.IOStreams{}).Commands() {
		if flag := cmd.Flags().Lookup("output"); cmd.Name() != "snapshot" && (flag == nil || !strings.Contains(flag.Usage, strings.Join(forms, ", "))) {
			t.Errorf("%s has no --output of all formats", cmd.Name())
		}
	}
}

// A namespace comes from the context of the kubeconfig, or from the flag; contexts, and what of the cluster is not asked for, are completed.
func TestKubeconfig(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"one","contexts":[{"name":"one","context":{"namespace":"shop"}},{"name":"other","context":{"namespace":"none"}}]}`
	must(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	file := cluster(t)
	for _, args := range []string{"", "--context other -n shop"} {
		full := append(strings.Fields(args), "tree", "deployment/web", "--kubeconfig", kubeconfig, "--snapshot", file)
		if got, err := run(t, full...); err != nil || !strings.Contains(got, "in namespace shop") {
			t.Errorf("%s: %v: %s", args, err, got)
		}
	}
	_, err := run(t, "tree", "deployment/web", "--kubeconfig", kubeconfig, "--context", "other", "--snapshot", file)
	commandtest.WantMistake(t, err, `in namespace "none"`)
	got, err := run(t, "__complete", "tree", "--kubeconfig", kubeconfig, "--context", "o")
	if err != nil || !strings.HasPrefix(got, "one\nother\n:4\n") {
		t.Errorf("contexts are completed by %q, %v", got, err)
	}
}

// What a library says is followed by what to do about it, in one line.
func TestLine(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for want, err := range map[string]error{
		"--snapshot":                           fmt.Errorf("listing pods: %w", apierrors.NewForbidden(pods, "", errors.New("no"))),
		"log in again":                         apierrors.NewUnauthorized("no"),
		"--kubeconfig and --context choose it": fmt.Errorf("asking:\n%w", &net.OpError{Op: "dial", Err: errors.New("connection refused")}),
		"get-contexts":                         errors.New(`context "x" does not exist`),
	} {
		if got := line(err); !strings.Contains(got, want) || strings.Contains(got, "\n") || !strings.HasPrefix(got, strings.Fields(err.Error())[0]) {
			t.Errorf("of %q it is said %q", err, got)
		}
	}
	if got := line(errors.New("two\n\tlines")); got != "two lines" {
		t.Errorf("two lines become %q", got)
	}
}

// Every `kubectl espalier` in the blocks of the pages is a command that there is, with flags that it has.
func TestCommandsOfPages(t *testing.T) {
	all, err := pages.All(os.DirFS("../.."))
	must(t, err)
	found := 0
	for i := range all {
		for _, block := range all[i].Blocks() {
			for line := range strings.Lines(strings.ReplaceAll(block.Text, "\\\n", " ")) {
				line, _, _ = strings.Cut(line, " #")
				args, is := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "kubectl espalier ")
				if !is || strings.HasSuffix(args, "[flags]") {
					continue
				}
				args, _, _ = strings.Cut(args, " >")
				args, _, _ = strings.Cut(args, " |")
				found++
				root := newCommand("v0.0.0", genericiooptions.IOStreams{})
				cmd, rest, err := root.Find(strings.Fields(args))
				switch {
				case err != nil:
				case cmd == root && !strings.Contains(args, "--help"):
					t.Errorf("%s: there is no command for %q", all[i].Path, line)
				default:
					err = cmd.ParseFlags(rest)
				}
				if err != nil && !strings.Contains(err.Error(), "help requested") {
					t.Errorf("%s: %q: %v", all[i].Path, strings.TrimSpace(line), err)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("the pages have %d commands", found)
	}
}

// docs/reference/kubectl-espalier.md has all commands with their flags: `go test ./cmd/kubectl-espalier -run Reference -update` writes it.
func TestReference(t *testing.T) {
	cmd := newCommand("v0.0.0", genericiooptions.IOStreams{})
	var out strings.Builder
	out.WriteString("# Commands of kubectl espalier\n\nAfter reading this page you know every command and flag. [kubectl espalier](../kubectl-espalier.md) shows what the commands print.\n")
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "completion" || c.Name() == "help" {
			continue
		}
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		out.WriteString("\n## " + c.Name() + "\n\n" + text + "\n\n```text\n" + c.UseLine() + "\n")
		if c.Example != "" {
			out.WriteString("\n" + c.Example + "\n")
		}
		out.WriteString("```\n\n" + commandtest.Reference(c.LocalFlags()))
	}
	out.WriteString("\n## Flags of all commands\n\n" + commandtest.Reference(cmd.PersistentFlags()))
	commandtest.WantPage(t, "../../docs/reference/kubectl-espalier.md", out.String(), *update)
}
