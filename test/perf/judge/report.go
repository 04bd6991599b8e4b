// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
)

// Report is everything there is to say about one call of the benchmark.
type Report struct {
	Machine Machine `json:"machine"`
	Scale   string  `json:"scale"`
	Nodes   int     `json:"nodes"`
	Rounds  int     `json:"rounds"`
	Limits  Limits  `json:"apiLimits"`
	// Profiled is the scheduler that was profiled, "" for none: its figures are dearer for it.
	Profiled string `json:"profiled,omitempty"`
	// Ended says why it ended before all rows were measured, "" if they were. Rows has those that are
	// complete, and Runs all that ended.
	Ended    string    `json:"ended,omitempty"`
	Rows     []Row     `json:"rows"`
	Verdicts []Verdict `json:"verdicts"`
	Runs     []Run     `json:"runs"`
}

// Machine is where it was measured, and what.
type Machine struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`
	MemoryGiB  float64 `json:"memoryGiB"`
	System     string  `json:"system"`
	Go         string  `json:"go"`
	Espalier   string  `json:"espalier"`
	Kubernetes string  `json:"kubernetes"`
	Date       string  `json:"date"`
	// LoadBefore is the machine's load average when it began: what others took.
	LoadBefore string `json:"loadBefore"`
}

// Limits are the rates at which things may be asked of the API server.
type Limits struct {
	// SchedulerQPS and SchedulerBurst are the same for all schedulers.
	SchedulerQPS   int `json:"schedulerQPS"`
	SchedulerBurst int `json:"schedulerBurst"`
	// Creators is how many pods are in the making at once. They have no other limit.
	Creators int `json:"creators"`
}

// moreRounds says which rows were measured more often than the others.
func (r Report) moreRounds() string {
	var b strings.Builder
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Rounds > r.Rounds {
			fmt.Fprintf(&b, ", %d of %s", row.Rounds, row.Workload)
		}
	}
	return b.String()
}

// Markdown is the report as it stands in docs/performance.md.
func (r Report) Markdown() string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "Measured %s: %s, %d cores, %.0f GiB, %s, %s. Espalier %s beside Kubernetes %s. %d nodes (%s), rounds: %d%s.\n",
		m.Date, m.CPU, m.Cores, m.MemoryGiB, m.System, m.Go, m.Espalier, m.Kubernetes, r.Nodes, r.Scale, r.Rounds, r.moreRounds())
	fmt.Fprintf(&b, "Schedulers may send %d requests a second, %d at once; %d pods are created at a time. Load average before: %s.\n",
		r.Limits.SchedulerQPS, r.Limits.SchedulerBurst, r.Limits.Creators, m.LoadBefore)
	if r.Profiled != "" {
		fmt.Fprintf(&b, "**Profiled**: the figures of %s are not those of a run by itself.\n", r.Profiled)
	}
	if r.Ended != "" {
		fmt.Fprintf(&b, "**Not complete**: these are the rows that were, when it ended: %s\n", r.Ended)
	}
	b.WriteString("\n")
	r.writeRatios(&b)
	r.writeFigures(&b)
	r.writeBeside(&b)
	b.WriteString("| promise | measured | promised | |\n| --- | --: | --: | --- |\n")
	for _, v := range r.Verdicts {
		sign, word := "<=", "**missed**"
		if v.AtLeast {
			sign = ">="
		}
		if v.Kept {
			word = "kept"
		}
		fmt.Fprintf(&b, "| %s | %.3g | %s %.3g | %s |\n", v.Promise, v.Value, sign, v.Bound, word)
	}
	return b.String()
}

func (r Report) writeRatios(b *strings.Builder) {
	b.WriteString("| workload | pods | pods/s: stock | null | ours | ours to null | ours to stock | misplaced: stock | null | ours |\n")
	b.WriteString("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for _, row := range r.Rows {
		fmt.Fprintf(b, "| %s | %d | %s | %.2f | %.2f | %s |\n", row.Workload, row.Pods,
			row.each(func(m Median) string { return fmt.Sprintf("%.0f", m.Throughput) }),
			row.ThroughputToNull, row.ThroughputToStock,
			row.each(func(m Median) string { return levels(m.Misplaced) }))
	}
	b.WriteString("\n")
}

func (r Report) writeFigures(b *strings.Builder) {
	b.WriteString("| workload | algorithm ms, mean (p50, p99): stock | null | ours | ours to stock | CPU s per 1,000 pods: stock | null | ours | ours to stock | peak RSS MiB: stock | null | ours | ours to stock |\n")
	b.WriteString("| --- |" + strings.Repeat(" --: |", 12) + "\n")
	for _, row := range r.Rows {
		fmt.Fprintf(b, "| %s | %s | %.3f | %s | %.2f | %s | %.2f |\n", row.Workload,
			row.each(func(m Median) string {
				return fmt.Sprintf("%.3f (%.2f, %.2f)", m.Algorithm.Mean, m.Algorithm.P50, m.Algorithm.P99)
			}), row.AlgorithmToStock,
			row.each(func(m Median) string { return fmt.Sprintf("%.2f", m.CPU) }), row.CPUToStock,
			row.each(func(m Median) string { return fmt.Sprintf("%d", m.PeakRSS>>20) }), row.RSSToStock)
	}
	b.WriteString("\n")
}

// writeBeside is a table of the rows that are compared with others, if there are any.
func (r Report) writeBeside(b *strings.Builder) {
	of := map[string]Row{}
	for _, row := range r.Rows {
		of[row.Workload] = row
	}
	head := "| a row beside another | | pods/s | algorithm ms, mean | CPU s per 1,000 pods | CPU s in all | peak RSS MiB | growth MiB | binding ms, p99 |\n| --- | --- |" + strings.Repeat(" --: |", 7) + "\n"
	for _, row := range r.Rows {
		for _, name := range Schedulers {
			to, compared := row.ToBeside[name]
			if !compared {
				continue
			}
			b.WriteString(head)
			head = ""
			this, that := row.Schedulers[name], of[row.Beside].Schedulers[name]
			fmt.Fprintf(b, "| %s, %s | %s | %.0f, %.0f: %.2f | %.3f, %.3f: %.2f | %.2f, %.2f: %.2f | %.2f, %.2f: %.2f | %d, %d: %.2f | %d, %d: %.2f | %.1f, %.1f |\n", row.Workload, row.Beside, name,
				this.Throughput, that.Throughput, to.Throughput, this.Algorithm.Mean, that.Algorithm.Mean, to.Algorithm,
				this.CPU, that.CPU, to.CPU, this.AllCPU, that.AllCPU, to.AllCPU, this.PeakRSS>>20, that.PeakRSS>>20, to.PeakRSS, this.Growth>>20, that.Growth>>20, to.Growth, this.BindingP99, that.BindingP99)
		}
	}
	if head == "" {
		b.WriteString("\n")
	}
}

// each is three cells of a table, one for each scheduler.
func (row Row) each(cell func(Median) string) string {
	cells := make([]string, 0, len(Schedulers))
	for _, name := range Schedulers {
		if m, measured := row.Schedulers[name]; measured {
			cells = append(cells, cell(m))
		} else {
			cells = append(cells, "not run")
		}
	}
	return strings.Join(cells, " | ")
}

// levels is 0, or what each level has, as "zone 3, node 12".
func levels(misplaced []Misplaced) string {
	var parts []string
	for _, m := range misplaced {
		if m.Pods > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", m.Level[strings.LastIndex(m.Level, "/")+1:], m.Pods))
		}
	}
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ", ")
}
