// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

// The schedulers that are measured, by the names in tables and files.
const (
	// Stock is kube-scheduler as it is released, with its own defaults.
	Stock = "stock"
	// Null decides free of cost: it binds and records its event.
	Null = "null"
	// Ours is espalier-scheduler with the shipped profile.
	Ours = "ours"
)

// Schedulers are all of them, in the order of the columns.
var Schedulers = []string{Stock, Null, Ours}

// Run is one scheduler on one workload, once. Its process was started for it.
type Run struct {
	Workload  string `json:"workload"`
	Scheduler string `json:"scheduler"`
	// Round counts from 1. In each round every scheduler runs the workload once.
	Round int `json:"round"`
	// Pods is how many were bound, in Seconds from the first binding to the last. Where they come
	// while others are bound, Seconds run from the creation of the first.
	Pods    int     `json:"pods"`
	Seconds float64 `json:"seconds"`
	// Algorithm is what the scheduler's own histogram says of these pods.
	Algorithm Algorithm `json:"schedulingAlgorithm"`
	// Binding is how long the bindings took, from the API client on and back.
	Binding Algorithm `json:"binding"`
	// CPUSeconds is the processor time of the scheduler's process in these seconds, and
	// ServerCPUSeconds that of the API server and etcd.
	CPUSeconds       float64 `json:"cpuSeconds"`
	ServerCPUSeconds float64 `json:"serverCPUSeconds"`
	// AllCPUSeconds is the processor time of the scheduler's process from its start on.
	AllCPUSeconds float64 `json:"allCPUSeconds"`
	// PeakRSS is the greatest resident set of the scheduler's process from its start on, and
	// Growth what it has beyond the resident set when the pods lay in the queue.
	PeakRSS int64 `json:"peakRSSBytes"`
	Growth  int64 `json:"growthBytes"`
	// Misplaced is summed over the workload's Deployments, first level first.
	Misplaced []Misplaced `json:"misplaced"`
}

// Algorithm is a histogram of kube-scheduler's in milliseconds: scheduling_algorithm_duration_seconds, unless it is said to be another.
// The quantiles are interpolated in its buckets, the first of which ends at 1 ms.
type Algorithm struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"meanMS"`
	P50   float64 `json:"p50MS"`
	P99   float64 `json:"p99MS"`
}

// Throughput is in pods a second.
func (r Run) Throughput() float64 { return ratio(float64(r.Pods), r.Seconds) }

// CPU is in seconds per 1,000 pods.
func (r Run) CPU() float64 { return ratio(1000*r.CPUSeconds, float64(r.Pods)) }

// MisplacedPods is the sum over the levels.
func (r Run) MisplacedPods() int {
	sum := 0
	for _, m := range r.Misplaced {
		sum += m.Pods
	}
	return sum
}

// ratio is a/b, and 0 where there is nothing to divide by: no promise is kept by it,
// because all upper bounds are checked for a value above 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
