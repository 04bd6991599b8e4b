// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/test/perf/bench"
	"github.com/espalier-scheduler/espalier/test/perf/judge"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

// measure runs the workloads, those that are compared in one world. If it fails, the report
// has what was measured before.
func measure(ctx context.Context, o options, say bench.Say) (report judge.Report, err error) {
	report = judge.Report{
		Scale: o.scale, Nodes: load.Scales[o.scale], Rounds: o.rounds,
		Limits: judge.Limits{SchedulerQPS: bench.QPS, SchedulerBurst: bench.Burst, Creators: bench.Creators},
	}
	if o.profile {
		report.Profiled = bench.Profiled
	}
	workloads, err := load.Choose(load.Workloads(report.Nodes), o.only)
	if err != nil {
		return report, err
	}
	devcluster, candidates, err := binaries(o)
	if err != nil {
		return report, err
	}
	if report.Machine, err = describe(ctx, candidates); err != nil {
		return report, err
	}
	// Absolute, because the schedulers are told of files in it.
	logs, err := filepath.Abs(filepath.Join(o.out, "perf", "logs"))
	if err != nil {
		return report, fmt.Errorf("finding the folder for logs: %w", err)
	}
	// Logs are appended to, and those of an earlier measurement would pass for this one's.
	if err := os.RemoveAll(logs); err != nil {
		return report, fmt.Errorf("emptying the folder for logs: %w", err)
	}
	defer func() { summarize(&report, workloads) }()
	for _, world := range load.Worlds(workloads) {
		for _, w := range world {
			say("%s (%d of %d): %s; %d nodes, %d pods", w.Name, 1+slices.IndexFunc(workloads, func(of load.Workload) bool { return of.Name == w.Name }),
				len(workloads), w.About, w.Nodes, w.Pods())
			if w.Beside != "" && !slices.ContainsFunc(world, func(of load.Workload) bool { return of.Name == w.Beside }) {
				say("  %s is not measured: nothing is said of %s beside it", w.Beside, w.Name)
			}
		}
		runs, err := rounds(ctx, o, devcluster, logs, world, candidates, say)
		report.Runs = append(report.Runs, runs...)
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// summarize makes rows of the runs, of workloads that were measured to the end, and judges them.
func summarize(report *judge.Report, workloads []load.Workload) {
	for _, workload := range workloads {
		ended := 0
		for _, run := range report.Runs {
			if run.Workload == workload.Name {
				ended++
			}
		}
		if ended < max(report.Rounds, workload.Rounds)*len(judge.Schedulers) {
			continue
		}
		row := judge.Summarize(workload.Name, workload.Beside, report.Runs)
		row.About, row.Nodes = workload.About, workload.Nodes
		report.Rows = append(report.Rows, row)
	}
	report.Verdicts = judge.Judge(report.Nodes, report.Rows)
}

// rounds has the candidates take turns in one world, each with one workload after the other: workloads are compared with each other, and
// what slows the machine for minutes must not slow one of them alone. Each round begins with another candidate, and every second one with the
// last workload, because what comes first finds an API server that has seen less. If it fails, the runs are those that had ended.
func rounds(ctx context.Context, o options, devcluster, logs string, workloads []load.Workload, candidates []bench.Candidate, say bench.Say) (runs []judge.Run, err error) {
	world, err := bench.NewWorld(ctx, devcluster, logs, workloads, say, o.progress)
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", workloads[0].Name, err)
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	if slices.ContainsFunc(workloads, func(w load.Workload) bool { return w.Controller }) {
		if world.Controller, err = rig.BinaryIn(o.bin, "espalier-controller"); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(workloads, func(w load.Workload) bool { return w.NullWebhook }) {
		if world.NullWebhook, err = rig.BinaryIn(o.tools, "nullwebhook"); err != nil {
			return nil, err
		}
	}
	if o.profile {
		world.Profiles = filepath.Join(o.out, "perf")
	}
	last := o.rounds
	for i := range workloads {
		last = max(last, workloads[i].Rounds)
	}
	inTurn := slices.Clone(workloads)
	for round := 1; round <= last; round++ {
		for i := range candidates {
			candidate := candidates[(i+round-1)%len(candidates)]
			for _, workload := range inTurn {
				run, err := world.Measure(ctx, workload, candidate, round)
				if err != nil {
					return runs, fmt.Errorf("workload %s: %s, round %d: %w", workload.Name, candidate.Name, round, err)
				}
				say("  %-5s %s, round %d: %6.1f pods/s, algorithm %8.3f ms, CPU %6.2f s per 1,000 pods and %.2f s in all, peak %4d MiB, %d misplaced",
					candidate.Name, workload.Name, round, run.Throughput(), run.Algorithm.Mean, run.CPU(), run.AllCPUSeconds, run.PeakRSS>>20, run.MisplacedPods())
				runs = append(runs, run)
			}
		}
		slices.Reverse(inTurn)
	}
	return runs, nil
}

// binaries finds everything that is started.
func binaries(o options) (devcluster string, candidates []bench.Candidate, err error) {
	for _, program := range []struct{ name, scheduler, folder string }{
		{"kube-scheduler", judge.Stock, o.tools},
		{"nullscheduler", judge.Null, o.tools},
		{"espalier-scheduler", judge.Ours, o.bin},
	} {
		path, err := rig.BinaryIn(program.folder, program.name)
		if err != nil {
			return "", nil, err
		}
		candidates = append(candidates, bench.Candidate{Name: program.scheduler, Binary: path})
	}
	devcluster, err = rig.BinaryIn(o.bin, "devcluster")
	return devcluster, candidates, err
}

// write writes perf.json and perf.md.
func write(report judge.Report, dir string) error {
	encoded, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	for name, content := range map[string][]byte{"perf.json": append(encoded, '\n'), "perf.md": []byte(report.Markdown())} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}
