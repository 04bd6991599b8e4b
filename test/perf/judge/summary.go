// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
)

// Row is what the rounds of one workload come to: medians, and the medians of the
// ratios in each round. What slows the machine for a while slows a whole round,
// so that ratios within rounds are steadier than ratios of medians.
type Row struct {
	Workload string `json:"workload"`
	About    string `json:"about,omitempty"`
	Nodes    int    `json:"nodes"`
	Pods     int    `json:"pods"`
	Rounds   int    `json:"rounds"`
	// Schedulers has a Median for every scheduler that was measured.
	Schedulers map[string]Median `json:"schedulers"`
	// Ours over the others, 0 where the other was not measured.
	ThroughputToNull  float64 `json:"throughputToNull"`
	ThroughputToStock float64 `json:"throughputToStock"`
	AlgorithmToStock  float64 `json:"algorithmToStock"`
	CPUToStock        float64 `json:"cpuToStock"`
	RSSToStock        float64 `json:"peakRSSToStock"`
	// Beside is the row that this one is compared with, "" for none, and ToBeside how the
	// schedulers compare, those that were measured in both.
	Beside   string            `json:"beside,omitempty"`
	ToBeside map[string]Ratios `json:"toBeside,omitempty"`
}

// Ratios are the figures of a scheduler in one row over its figures in another, within rounds.
type Ratios struct {
	Throughput float64 `json:"podsPerSecond"`
	Algorithm  float64 `json:"schedulingAlgorithm"`
	CPU        float64 `json:"cpuSecondsPer1000Pods"`
	AllCPU     float64 `json:"allCPU"`
	PeakRSS    float64 `json:"peakRSS"`
	Growth     float64 `json:"growth"`
	// BindingP99 is no ratio: by how many milliseconds 99 of a hundred bindings take longer, below 0 if they do not.
	BindingP99 float64 `json:"bindingP99MoreMS"`
}

// Median is the middle of one scheduler's rounds, each figure for itself. Misplaced is
// the worst of the rounds: a spread that is uneven at times is not even.
type Median struct {
	Throughput float64   `json:"podsPerSecond"`
	Algorithm  Algorithm `json:"schedulingAlgorithm"`
	CPU        float64   `json:"cpuSecondsPer1000Pods"`
	ServerCPU  float64   `json:"serverCPUSecondsPer1000Pods"`
	AllCPU     float64   `json:"allCPUSeconds"`
	PeakRSS    int64     `json:"peakRSSBytes"`
	Growth     int64     `json:"growthBytes"`
	// BindingP99 is how many milliseconds a binding takes, 99 of a hundred of them.
	BindingP99 float64     `json:"bindingP99MS"`
	Misplaced  []Misplaced `json:"misplaced"`
}

// Summarize makes a Row of the runs of one workload, beside another or "".
func Summarize(workload, beside string, runs []Run) Row {
	row := Row{Workload: workload, Beside: beside, Schedulers: map[string]Median{}, ToBeside: map[string]Ratios{}}
	by, others := map[string][]Run{}, map[string][]Run{}
	for _, run := range runs {
		switch run.Workload {
		case workload:
			by[run.Scheduler] = append(by[run.Scheduler], run)
			row.Pods = max(row.Pods, run.Pods)
			row.Rounds = max(row.Rounds, run.Round)
		case beside:
			others[run.Scheduler] = append(others[run.Scheduler], run)
		}
	}
	for _, name := range Schedulers {
		if len(by[name]) > 0 {
			row.Schedulers[name] = summarize(by[name])
		}
		if len(by[name]) > 0 && len(others[name]) > 0 {
			row.ToBeside[name] = compareRuns(by[name], others[name])
		}
	}
	row.ThroughputToNull = medianRatio(by[Ours], by[Null], Run.Throughput)
	row.ThroughputToStock = medianRatio(by[Ours], by[Stock], Run.Throughput)
	row.AlgorithmToStock = medianRatio(by[Ours], by[Stock], algorithm)
	row.CPUToStock = medianRatio(by[Ours], by[Stock], Run.CPU)
	row.RSSToStock = medianRatio(by[Ours], by[Stock], peakRSS)
	return row
}

func compareRuns(these, those []Run) Ratios {
	return Ratios{
		Throughput: medianRatio(these, those, Run.Throughput),
		Algorithm:  medianRatio(these, those, algorithm),
		CPU:        medianRatio(these, those, Run.CPU),
		AllCPU:     medianRatio(these, those, allCPU),
		PeakRSS:    medianRatio(these, those, peakRSS),
		Growth:     medianRatio(these, those, growth),
		BindingP99: medianPaired(these, those, bindingP99, func(this, that float64) float64 { return this - that }),
	}
}

func algorithm(r Run) float64  { return r.Algorithm.Mean }
func allCPU(r Run) float64     { return r.AllCPUSeconds }
func peakRSS(r Run) float64    { return float64(r.PeakRSS) }
func growth(r Run) float64     { return float64(r.Growth) }
func bindingP99(r Run) float64 { return r.Binding.P99 }

func summarize(runs []Run) Median {
	m := Median{
		Throughput: medianOf(runs, Run.Throughput),
		CPU:        medianOf(runs, Run.CPU),
		ServerCPU:  medianOf(runs, func(r Run) float64 { return ratio(1000*r.ServerCPUSeconds, float64(r.Pods)) }),
		AllCPU:     medianOf(runs, allCPU),
		PeakRSS:    int64(medianOf(runs, peakRSS)),
		Growth:     int64(medianOf(runs, growth)),
		BindingP99: medianOf(runs, bindingP99),
		Algorithm: Algorithm{
			Count: uint64(medianOf(runs, func(r Run) float64 { return float64(r.Algorithm.Count) })),
			Mean:  medianOf(runs, algorithm),
			P50:   medianOf(runs, func(r Run) float64 { return r.Algorithm.P50 }),
			P99:   medianOf(runs, func(r Run) float64 { return r.Algorithm.P99 }),
		},
	}
	worst := -1
	for _, run := range runs {
		if pods := run.MisplacedPods(); pods > worst {
			worst, m.Misplaced = pods, run.Misplaced
		}
	}
	return m
}

func medianOf(runs []Run, figure func(Run) float64) float64 {
	values := make([]float64, 0, len(runs))
	for _, run := range runs {
		values = append(values, figure(run))
	}
	return median(values)
}

func medianRatio(these, those []Run, figure func(Run) float64) float64 {
	return medianPaired(these, those, figure, ratio)
}

// medianPaired pairs the runs of each round.
func medianPaired(these, those []Run, figure func(Run) float64, compare func(this, that float64) float64) float64 {
	var values []float64
	for _, this := range these {
		for _, that := range those {
			if this.Round == that.Round {
				values = append(values, compare(figure(this), figure(that)))
			}
		}
	}
	return median(values)
}

// median is the middle value, the mean of the two in the middle, or 0 of nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
