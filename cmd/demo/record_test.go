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
	"strings"
	"testing"
	"time"
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
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
