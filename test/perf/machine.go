// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/espalier-scheduler/espalier/test/perf/bench"
	"github.com/espalier-scheduler/espalier/test/perf/judge"
)

// describe says what machine this is, and which schedulers, as they tell themselves.
func describe(ctx context.Context, candidates []bench.Candidate) (judge.Machine, error) {
	m := judge.Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Date: time.Now().UTC().Format(time.DateOnly)}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return m, fmt.Errorf("describing the machine: it takes the /proc of Linux: %w", err)
	}
	cpus, err := fs.CPUInfo()
	if err != nil {
		return m, fmt.Errorf("describing the machine: %w", err)
	}
	if len(cpus) > 0 {
		m.CPU = cpus[0].ModelName
	}
	memory, err := fs.Meminfo()
	if err != nil {
		return m, fmt.Errorf("describing the machine: %w", err)
	}
	if memory.MemTotalBytes != nil {
		m.MemoryGiB = float64(*memory.MemTotalBytes) / (1 << 30)
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return m, fmt.Errorf("describing the machine: %w", err)
	}
	m.LoadBefore = fmt.Sprintf("%.2f %.2f %.2f", load.Load1, load.Load5, load.Load15)
	m.System = runtime.GOOS + "/" + runtime.GOARCH
	for _, candidate := range candidates {
		said, err := exec.CommandContext(ctx, candidate.Binary, "--version").Output()
		if err != nil {
			return m, fmt.Errorf("asking %s for its version: %w", candidate.Binary, err)
		}
		words := strings.Fields(string(said))
		switch {
		case len(words) < 2:
			return m, fmt.Errorf("asking %s for its version: it says %q", candidate.Binary, said)
		case candidate.Name == judge.Ours:
			m.Espalier = words[1]
		case candidate.Name == judge.Stock:
			m.Kubernetes = words[1]
		}
	}
	return m, nil
}
