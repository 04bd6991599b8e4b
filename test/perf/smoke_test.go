// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/test/perf/judge"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

// interrupting is a writer that interrupts who writes a certain text to it.
type interrupting struct {
	bytes.Buffer
	at        string
	interrupt context.CancelFunc
}

func (w *interrupting) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte(w.at)) {
		w.interrupt()
	}
	return w.Buffer.Write(text)
}

// A run in small shows that the harness works. What it measures means nothing. At last it is interrupted, when our scheduler has run Ordinary,
// and the other schedulers Refused and AttackOwners too, which share its world: what ended before is not lost.
func TestSmoke(t *testing.T) {
	bin := os.Getenv(rig.BinEnv)
	if bin == "" {
		bin = "../../bin"
	}
	out := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	printed := interrupting{at: "ours  Ordinary, round 1", interrupt: cancel}
	rows := []string{"ScaleDownAny", "Spread2", "Unrecorded", "Churn", "Claims", "Allocations200", "Ordinary"}
	o := options{scale: "tiny", rounds: 1, only: append([]string{"Refused", "AttackOwners"}, rows...), bin: bin, tools: "../../_output/perf", out: out}
	earlier := filepath.Join(out, "perf", "logs", "Ordinary", "ours.log")
	must(t, os.MkdirAll(filepath.Dir(earlier), 0o755))
	must(t, os.WriteFile(earlier, []byte("of an earlier measurement\n"), 0o600))
	if err := run(ctx, o, &printed); !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v, and it was interrupted:\n%s", err, printed.String())
	}
	t.Log(printed.String())
	content, err := os.ReadFile(filepath.Join(out, "perf.json"))
	must(t, err)
	var report judge.Report
	must(t, json.Unmarshal(content, &report))
	var measured []string
	for _, row := range report.Rows {
		measured = append(measured, row.Workload)
	}
	if !slices.Equal(measured, rows) || len(report.Runs) != 3*len(rows)+4 || !strings.Contains(report.Ended, "Refused") ||
		len(report.Verdicts) == 0 || report.Machine.Kubernetes == "" {
		t.Fatalf("the report is %s", content)
	}
	for _, run := range report.Runs {
		// In Churn a pod may be tried twice, and one more than is bound.
		if run.Algorithm.Count < uint64(run.Pods) || run.Seconds <= 0 || run.PeakRSS < 1<<20 || len(run.Misplaced) == 0 {
			t.Errorf("%s of %s is %+v", run.Scheduler, run.Workload, run)
		}
		if run.AllCPUSeconds < run.CPUSeconds || run.Growth < 0 || run.Growth > run.PeakRSS {
			t.Errorf("%s of %s is %+v", run.Scheduler, run.Workload, run)
		}
		if run.Scheduler == judge.Ours && run.Workload != "Churn" && run.MisplacedPods() > 0 {
			t.Errorf("ours has misplaced %v", run.Misplaced)
		}
	}
	if content, err := os.ReadFile(earlier); err == nil && bytes.Contains(content, []byte("earlier")) {
		t.Errorf("what an earlier measurement logged is still there: %.100s", content)
	}
	table, err := os.ReadFile(filepath.Join(out, "perf.md"))
	if err != nil || !strings.Contains(string(table), "| Ordinary |") {
		t.Errorf("the table is %q, %v", table, err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for want, args := range map[string][]string{
		`--scale="big"`:         {"--scale=big"},
		`"0" for flag -rounds`:  {"--rounds=0"},
		`"-1" for flag -rounds`: {"--rounds=-1"},
		`"x" for flag -rounds`:  {"--rounds=x"},
		`"maybe" for -check`:    {"--check=maybe"},
		`"Spread2"`:             {"Spread2"},
	} {
		if _, err := parse(args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: the error is %v, want one with %s", args, err, want)
		}
	}
	o, err := parse([]string{"--only=Drip,, Basic", "--check=1", "--profile=0"}, &bytes.Buffer{})
	if err != nil || len(o.only) != 2 || !o.check || o.profile || o.rounds != 3 {
		t.Errorf("got %+v, %v", o, err)
	}
}

// Every row of the benchmark is explained, and no other.
func TestRowsAreDocumented(t *testing.T) {
	content, err := os.ReadFile("../../docs/performance.md")
	must(t, err)
	for _, w := range load.Workloads(5000) {
		name := w.Name
		for _, family := range []string{"Crowded", "Workloads"} {
			if strings.HasPrefix(name, family) {
				name = family + "N"
			}
		}
		if !strings.Contains(string(content), "\n| **"+name+"** |") {
			t.Errorf("docs/performance.md has no row %s", name)
		}
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
