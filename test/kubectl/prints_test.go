// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/inspect"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement/decision"
)

// printed are the commands by the names of their golden files. Each is run for people and as JSON, and some with everything.
// The JSON of those that differ from another one in their flags alone has no file of its own.
var printed = map[string]string{
	"tree":     "tree deployment/web",
	"levels":   "tree deployment/api --levels example.com/rack",
	"explain":  "explain pod/db-3",
	"pending":  "explain pod/choosy",
	"balance":  "balance",
	"simulate": "simulate -f testdata/web.yaml --replicas 18 --cordon node-000,node-001",
	"drain":    "simulate --drain node-003",
	"nodes":    "simulate -f testdata/db.yaml --replicas 9 --add-nodes 3,like=node-000,topology.kubernetes.io/zone=zone-d",
	"lint":     "lint -f testdata/api.yaml",
	"convert":  "convert -f testdata/compose.yaml",
	"annotate": "convert --from constraints -f testdata/api.yaml",
	"faults":   "faults -A",
	"moves":    "moves",
	"queue":    "queue all",
	"doctor":   "doctor",
}

// changing is what differs from run to run, and what is written in its place.
var changing = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b(web|api)-[a-z0-9]{8,10}(-next)?-[a-z0-9]+\b`), "$1-POD"},
	{regexp.MustCompile(`[A-Za-z0-9.-]+_[0-9a-f]{8}-[0-9a-f-]{27}`), "HOLDER"},
	{regexp.MustCompile(`v1\.3\d\.\d+(-beta\.\d+)?`), "v1.37.N"},
}

// ages are those of tables, and columns what is between theirs.
var ages, columns = regexp.MustCompile(`\b(\d+[dhms])+\b`), regexp.MustCompile(`(\S) {2,}`)

func settled(text string) string {
	for _, c := range changing {
		text = c.is.ReplaceAllString(text, c.as)
	}
	return text
}

// Every command prints what is in its golden file, for people and as JSON.
func TestPrinted(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(printed)) {
		t.Run(name, func(t *testing.T) {
			args := append(strings.Fields(printed[name]), "-n", namespace)
			golden(t, name+".txt", must(t, args...))
			if !slices.Contains([]string{"levels", "drain", "nodes"}, name) {
				golden(t, name+".json", must(t, append(args, "-o", "json")...))
			}
		})
	}
	for _, name := range []string{"tree", "explain", "balance", "moves"} {
		t.Run(name+"-wide", func(t *testing.T) {
			golden(t, name+"-wide.txt", must(t, append(strings.Fields(printed[name]), "-n", namespace, "-o", "wide")...))
		})
	}
	for _, format := range []string{"svg", "html", "dot"} {
		t.Run("tree-"+format, func(t *testing.T) {
			if text := must(t, "tree", "deployment/web", "-n", namespace, "-o", format); !strings.Contains(text, "node-011") {
				t.Errorf("a picture is %.300s", text)
			}
		})
	}
}

// golden compares what is printed with a golden file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	text = settled(text)
	if is, err := rig.ServerVersion(world.client); err != nil {
		t.Fatal(err)
	} else if strings.HasPrefix(name, "explain") && is.LessThan(version.MajorMinor(1, rig.HintsSince)) { // without the fast path
		text = strings.NewReplacer(`"fast": false`, `"fast": true`, "ranked by the tree among all nodes that fit", "proposed by the tree before other nodes were filtered").Replace(text)
	}
	if strings.HasPrefix(name, "moves") || strings.HasPrefix(name, "faults") {
		text = ages.ReplaceAllString(text, "AGE")
		text = columns.ReplaceAllString(text, "$1  ") // the width of one is that of an age
	}
	path := filepath.Join("testdata", "golden", name)
	if *update {
		fatal(t, os.MkdirAll(filepath.Dir(path), 0o755))
		fatal(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	fatal(t, err)
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// Each command has a golden file, but the one that writes files.
func TestEveryCommandIsPrinted(t *testing.T) {
	help := must(t, "--help")
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var known []string
	for _, args := range printed {
		known = append(known, strings.Fields(args)[0])
	}
	for line := range strings.Lines(list) {
		name := strings.Fields(line)[0]
		if !slices.Contains(known, name) && !slices.Contains([]string{"snapshot", "completion", "help"}, name) {
			t.Errorf("%s is not printed", name)
		}
	}
}

// A snapshot has all that the commands need, and no Secret: they say the same of it as of the cluster.
func TestSnapshot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.json")
	must(t, "snapshot", "--file", file)
	text, err := os.ReadFile(file)
	fatal(t, err)
	var read struct{ Objects []struct{ Kind string } }
	fatal(t, json.Unmarshal(text, &read))
	kinds := make(map[string]int)
	for _, o := range read.Objects {
		kinds[o.Kind]++
	}
	if kinds["Node"] != 12 || kinds["Pod"] != 14+5+8+1 || kinds["Deployment"] != 2 || kinds["StatefulSet"] != 1 || kinds["Secret"] != 0 || kinds["ConfigMap"] != 1 {
		t.Errorf("there are %v", kinds)
	}
	for _, name := range []string{"tree", "levels", "explain", "pending", "balance", "simulate", "drain", "nodes", "lint"} {
		args := append(strings.Fields(printed[name]), "-n", namespace, "-o", "json")
		if diff := cmp.Diff(settled(must(t, args...)), settled(must(t, append(args, "--snapshot", file)...))); diff != "" {
			t.Errorf("%s says of a snapshot (-cluster +snapshot):\n%s", name, diff)
		}
	}
	if out := must(t, "snapshot"); !strings.HasPrefix(out, "{") || len(out) < len(text)/2 {
		t.Errorf("without --file it prints %s", fmt.Sprintf("%.100s", out))
	}
}

// Of every pod that is bound it is said that it is on its node: by what was written when it was bound, and by the way down the tree to it now.
func TestEveryBoundPodIsExplained(t *testing.T) {
	api, err := client.New(world.config, client.Options{Scheme: snapshot.Scheme()})
	fatal(t, err)
	s, err := snapshot.Read(t.Context(), api, "", time.Now(), nil)
	fatal(t, err)
	c, err := inspect.Open(t.Context(), s, manifests.SchedulerConfig, inspect.AllNodes)
	fatal(t, err)
	labels := make(map[string]map[string]string)
	for _, n := range snapshot.Of[*corev1.Node](s) {
		labels[n.Name] = n.Labels
	}
	explained := 0
	for _, pod := range snapshot.Of[*corev1.Pod](s) {
		node := pod.Spec.NodeName
		if node == "" || pod.Spec.SchedulerName != rig.SchedulerName {
			continue
		}
		e, err := c.Explain(t.Context(), pod.Namespace, pod.Name)
		fatal(t, err)
		if e.Node != node || len(e.Path) < 2 || e.Path[len(e.Path)-1].Chosen.Name != node || e.Decision == nil || e.Note != "" {
			t.Errorf("of %s on %s it is said %+v", pod.Name, node, e)
			continue
		}
		for _, turn := range e.Path[:len(e.Path)-1] {
			if turn.Chosen.Name != labels[node][turn.Level] {
				t.Errorf("of %s on %s it is said that it is in %s %s", pod.Name, node, turn.Level, turn.Chosen.Name)
			}
		}
		last := e.Decision.Steps[len(e.Decision.Steps)-1]
		if last.Level != decision.Node || last.Chosen.Name != node {
			t.Errorf("%s is on %s, and was bound with %s", pod.Name, node, e.Decision.String())
		}
		explained++
	}
	if want := 14 + 5 + 8; explained != want {
		t.Errorf("%d of %d pods are explained", explained, want)
	}
	// And so the command itself says.
	for _, name := range []string{"db-0", "db-4"} {
		pod, err := world.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		fatal(t, err)
		if out := must(t, "explain", "pod/"+name, "-n", namespace); !strings.Contains(out, "\non node "+pod.Spec.NodeName+"\n") {
			t.Errorf("of %s on %s it prints\n%s", name, pod.Spec.NodeName, out)
		}
	}
}
