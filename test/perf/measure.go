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

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/test/perf/bench"
	"github.com/espalier-scheduler/espalier/test/perf/judge"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

// measure runs every workload in a world of its own.
func measure(ctx context.Context, o options, say bench.Say) (judge.Report, error) {
	report := judge.Report{
		Scale: o.scale, Nodes: load.Scales[o.scale], Rounds: o.rounds,
		Limits: judge.Limits{SchedulerQPS: bench.QPS, SchedulerBurst: bench.Burst, Creators: bench.Creators},
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
	logs := filepath.Join(o.out, "perf", "logs")
	// Logs are appended to, and those of an earlier measurement would pass for this one's.
	if err := os.RemoveAll(logs); err != nil {
		return report, fmt.Errorf("emptying the folder for logs: %w", err)
	}
	for i, workload := range workloads {
		say("%s (%d of %d): %s; %d nodes, %d pods", workload.Name, i+1, len(workloads), workload.About, workload.Nodes, workload.Pods())
		dir := filepath.Join(logs, workload.Name)
		// Absolute, because the schedulers are told of files in it.
		if dir, err = filepath.Abs(dir); err != nil {
			return report, fmt.Errorf("finding the folder for logs: %w", err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return report, fmt.Errorf("making the folder for logs: %w", err)
		}
		runs, err := rounds(ctx, o, devcluster, dir, workload, candidates, say)
		if err != nil {
			return report, fmt.Errorf("workload %s: %w", workload.Name, err)
		}
		report.Runs = append(report.Runs, runs...)
		row := judge.Summarize(workload.Name, runs)
		row.About, row.Nodes = workload.About, workload.Nodes
		report.Rows = append(report.Rows, row)
	}
	report.Verdicts = judge.Judge(report.Nodes, report.Rows)
	return report, nil
}

// rounds has the candidates take turns in one world. Each round begins with another one,
// because what comes first finds an API server that has seen less.
func rounds(ctx context.Context, o options, devcluster, dir string, workload load.Workload, candidates []bench.Candidate, say bench.Say) (runs []judge.Run, err error) {
	world, err := bench.NewWorld(ctx, devcluster, dir, workload, say)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	if o.profile {
		world.Profiles = filepath.Join(o.out, "perf")
	}
	for round := 1; round <= o.rounds; round++ {
		for i := range candidates {
			candidate := candidates[(i+round-1)%len(candidates)]
			run, err := world.Measure(ctx, candidate, round)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", candidate.Name, round, err)
			}
			say("  %-5s round %d: %6.1f pods/s, algorithm %8.3f ms, CPU %6.2f s per 1,000 pods, peak %4d MiB, %d misplaced",
				candidate.Name, round, run.Throughput(), run.Algorithm.Mean, run.CPU(), run.PeakRSS>>20, run.MisplacedPods())
			runs = append(runs, run)
		}
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
