// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/simulation"
)

// texts are those of a picture, which must be well-formed.
func texts(t *testing.T, svg string) string {
	t.Helper()
	reader := xml.NewDecoder(strings.NewReader(svg))
	var all strings.Builder
	for {
		token, err := reader.Token()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		must(t, err)
		if text, is := token.(xml.CharData); is {
			all.Write(text)
		}
	}
}

// A recording begins where the third act does, with the screen as it was, and its lines come in the order and the proportion of time in which they came.
func TestRecording(t *testing.T) {
	var r recording
	r.add(time.Second, "\n── 1  the example workloads are created")
	r.add(3*time.Second, "\n── 3  zone-b is cordoned ──")
	r.add(4*time.Second, "web: <40> pods      as even as it can be\n  ├ zone-a   14 ███")
	r.add(5*time.Second, "PASS")
	file := filepath.Join(t.TempDir(), "demo.svg")
	must(t, r.write(file))
	text, err := os.ReadFile(file)
	must(t, err)
	svg := string(text)
	if got := texts(t, svg); !strings.Contains(got, "created") || !strings.Contains(got, "web: <40> pods") {
		t.Errorf("it shows %s", got)
	}
	for _, want := range []string{
		"0.00% { transform: translateY(442px); }", "40.00% { transform: translateY(408px); }", "80.00% { transform: translateY(391px); }",
		`<tspan class="bar">███</tspan>`, `<tspan class="good">as even as it can be</tspan>`, `<tspan class="good">PASS</tspan>`, "prefers-color-scheme: dark", "prefers-reduced-motion",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("it lacks %s:\n%s", want, svg)
		}
	}
	if err := (recording{}).write(file); err == nil {
		t.Error("nothing is recorded, and that is no error")
	}
}

// docs/demo.svg is of a run of the demo as it is: every workload of the last acts is in it, each as even as it can be.
func TestRecordedDemo(t *testing.T) {
	text, err := os.ReadFile("../../docs/demo.svg")
	must(t, err)
	shown := texts(t, string(text))
	for _, w := range lasting() {
		for _, pods := range []int{w.cordoned, w.returned} {
			if want := fmt.Sprintf("%s: %d pods, %s", w.name, pods, w.about); !strings.Contains(shown, want) {
				t.Errorf("it does not show %q: record it anew with make demo-svg", want)
			}
		}
	}
	if n := strings.Count(shown, "as even as it can be"); n < 3*len(lasting()) || strings.Contains(shown, "NOT EVEN") || !strings.Contains(shown, "PASS: ") {
		t.Errorf("it shows %d even spreads", n)
	}
	if strings.Contains(string(text), "http://") && strings.Count(string(text), "http") != 1 {
		t.Error("it loads something")
	}
}

// must ends the test if there is an error.
var must = placementtest.Must

// cluster24 is the demo's cluster, with so many pods on every node but the first.
func cluster24(count int) []evenness.Node {
	var nodes []evenness.Node
	for i := range 24 {
		zone := fmt.Sprintf("zone-%c", 'a'+i%3)
		n := evenness.Node{Name: fmt.Sprintf("node-%03d", i), Values: []string{zone, fmt.Sprintf("%s-rack-%d", zone, 1+i/3%2)}, Count: count}
		if i == 0 {
			n.Count = 0
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func TestDraw(t *testing.T) {
	want := strings.TrimPrefix(`
web: 23 pods                                                                                    even
  ├ zone-a   7 ███████                │ rack-1  3:  ·  1  1  1 │ rack-2  4:  1  1  1  1
  ├ zone-b   8 ████████               │ rack-1  4:  1  1  1  1 │ rack-2  4:  1  1  1  1
  └ zone-c   8 ████████               │ rack-1  4:  1  1  1  1 │ rack-2  4:  1  1  1  1
`, "\n")
	if got := draw("web: 23 pods", "even", cluster24(1)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFits wants every line of every drawing within the width, also those of the heads.
func TestFits(t *testing.T) {
	for _, w := range workloads {
		head := fmt.Sprintf("%s: %d pods, %s", w.name, w.returned, w.about)
		for line := range strings.Lines(draw(head, "as even as it can be", cluster24(99))) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

// What is to be tried next is there.
func TestNext(t *testing.T) {
	pages := regexp.MustCompile(`docs/[a-z-]+\.md`).FindAllString(next, -1)
	for _, page := range pages {
		if _, err := os.Stat("../../" + page); err != nil {
			t.Error(err)
		}
	}
	if len(pages) < 3 || !strings.Contains(next, "tree deployment/"+workloads[0].name+" -n "+namespace) {
		t.Errorf("it says %s", next)
	}
}

func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		failures []string
		status   int
		want     string
	}{
		{nil, 0, next + "\nPASS: 3 spreads were judged, and every one is as even as it can be (2.0 s)\n"},
		{
			[]string{"web after create: a has 2, while b has 0"}, 1,
			"\nweb after create: a has 2, while b has 0\n\nFAIL: 1 of 3 spreads could be more even: web after create (2.0 s)\n",
		},
	} {
		var out strings.Builder
		p := &play{say: newNarrator(&out, time.Now()), judged: 3, failures: tc.failures, names: []string{"web after create"}}
		if status := p.verdict(2 * time.Second); status != tc.status || out.String() != tc.want {
			t.Errorf("status %d and %q, want %d and %q", status, out.String(), tc.status, tc.want)
		}
	}
}

// TestPicture places the pods of the picture in docs/evenness.md, and wants the picture to be what comes of it.
func TestPicture(t *testing.T) {
	levels, err := level.Parse("spread=topology.kubernetes.io/zone")
	must(t, err)
	spread := simulation.New(levels)
	var nodes []evenness.Node
	for zone, size := range []int{10, 5, 2} {
		for i := range size {
			name, value := fmt.Sprintf("zone-%c-%02d", 'a'+zone, i), fmt.Sprintf("zone-%c", 'a'+zone)
			spread.Set(placement.Node{Name: name, Values: []placement.Value{{Text: value}}})
			nodes = append(nodes, evenness.Node{Name: name, Values: []string{value, value + "-rack-1"}})
		}
	}
	spread.Place(61, func(string) bool { return true })
	for i := range nodes {
		tally, _ := spread.Tally(nodes[i].Name)
		nodes[i].Count = int(tally.Revision)
	}
	picture := draw("web: 61 pods over zones of ten, five and two nodes", "as even as it can be", nodes)
	page, err := os.ReadFile("../../docs/evenness.md")
	must(t, err)
	if !strings.Contains(string(page), picture) {
		t.Errorf("docs/evenness.md does not show this picture:\n%s", picture)
	}
}

// TestWorkloadsSayWhatTheirFilesAsk keeps the demo from judging by other levels, or waiting for other numbers, than the examples ask for.
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
