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

	"github.com/google/go-cmp/cmp"
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
	{regexp.MustCompile(`v1\.37\.\d+`), "v1.37.N"},
}

// ages are those of tables, and columns what is between theirs.
var ages, columns = regexp.MustCompile(`\b(\d+[dhms])+\b`), regexp.MustCompile(`(\S) {2,}`)

func settled(text string) string {
	for _, c := range changing {
		text = c.is.ReplaceAllString(text, c.as)
	}
	return text
}

// Every command prints what is in its golden file, for people and as JSON; as YAML it says the same as in JSON.
func TestPrinted(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(printed)) {
		t.Run(name, func(t *testing.T) {
			args := append(strings.Fields(printed[name]), "-n", namespace)
			golden(t, name+".txt", must(t, args...))
			if !slices.Contains([]string{"levels", "drain", "nodes"}, name) {
				golden(t, name+".json", must(t, append(args, "-o", "json")...))
			}
			if text := must(t, append(args, "-o", "yaml")...); strings.HasPrefix(text, "{") || len(text) < 20 {
				t.Errorf("as YAML it is %q", text)
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
	if strings.HasPrefix(name, "moves") || strings.HasPrefix(name, "faults") {
		text = ages.ReplaceAllString(text, "AGE")
		text = columns.ReplaceAllString(text, "$1  ") // the width of one is that of an age
	}
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	var read struct{ Objects []struct{ Kind string } }
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
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
