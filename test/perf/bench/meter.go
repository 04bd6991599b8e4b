// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/procfs"
	"k8s.io/component-base/metrics/testutil"

	"github.com/espalier-scheduler/espalier/test/perf/judge"
)

const (
	algorithmMetric = "scheduler_scheduling_algorithm_duration_seconds"
	extensionMetric = "scheduler_framework_extension_point_duration_seconds"
)

// reading is what the meters say at one moment.
type reading struct {
	cpu, serverCPU float64 // seconds since the start of the process
	rss, peakRSS   int64
	algorithm      *dto.Histogram
	binding        *dto.Histogram
}

// read reads the meters of a scheduler and of the control plane.
func (w *World) read(ctx context.Context, r *running) (reading, error) {
	var now reading
	var err error
	if now.cpu, now.rss, now.peakRSS, err = usage(r.Name, r.Pid()); err != nil {
		return now, err
	}
	if now.serverCPU, _, _, err = usage(w.cluster.Name, w.cluster.Pid()); err != nil {
		return now, err
	}
	families, err := scrape(ctx, r.port+"/metrics")
	if err != nil {
		return now, err
	}
	now.binding = bindingIn(families)
	now.algorithm, err = algorithmIn(families, r.Name)
	return now, err
}

// bindingIn finds the histogram of bindings, of pods that were bound. It is nil before the first pod.
func bindingIn(families map[string]*dto.MetricFamily) *dto.Histogram {
	for _, m := range families[extensionMetric].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["extension_point"] == "Bind" && labels["status"] == "Success" {
			return m.GetHistogram()
		}
	}
	return nil
}

// algorithmIn finds the histogram of the algorithm. It is empty before the first pod.
func algorithmIn(families map[string]*dto.MetricFamily, scheduler string) (*dto.Histogram, error) {
	family := families[algorithmMetric]
	if family == nil || len(family.GetMetric()) != 1 {
		return nil, fmt.Errorf("%s has no metric %s with one series: is it another version of Kubernetes?", scheduler, algorithmMetric)
	}
	return family.GetMetric()[0].GetHistogram(), nil
}

// usage is a process's processor time in seconds, its resident set in bytes, and the greatest so far.
func usage(name string, pid int) (cpu float64, rss, peakRSS int64, err error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("measuring %s: it takes the /proc of Linux: %w", name, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, 0, 0, fmt.Errorf("measuring %s: %w", name, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0, 0, 0, fmt.Errorf("measuring %s: %w", name, err)
	}
	if status.VmHWM > math.MaxInt64 {
		return 0, 0, 0, fmt.Errorf("measuring %s: a peak of %d bytes cannot be", name, status.VmHWM)
	}
	return stat.CPUTime(), int64(min(status.VmRSS, status.VmHWM)), int64(status.VmHWM), nil
}

// scraper asks schedulers on this machine. Their certificates are made at every start,
// so nobody can check them; and each port is asked a few times, so nothing is kept open.
var scraper = &http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
}}

// scrape reads what a scheduler's port tells.
func scrape(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	body, err := ask(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	families, err := testutil.TextToMetricFamilies(body)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", url, err)
	}
	return families, nil
}

// algorithmBetween is what the histogram has gained from one reading to the next.
func algorithmBetween(before, after *dto.Histogram) judge.Algorithm {
	count := after.GetSampleCount() - before.GetSampleCount()
	if count == 0 {
		return judge.Algorithm{}
	}
	sum := after.GetSampleSum() - before.GetSampleSum()
	earlier := map[float64]uint64{}
	for _, bucket := range before.GetBucket() {
		earlier[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
	}
	gained := &dto.Histogram{SampleCount: new(count), SampleSum: new(sum)}
	for _, bucket := range after.GetBucket() {
		bound := bucket.GetUpperBound()
		gained.Bucket = append(gained.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(bucket.GetCumulativeCount() - earlier[bound])})
	}
	histogram := testutil.Histogram{Histogram: gained}
	return judge.Algorithm{
		Count: count, Mean: 1000 * sum / float64(count),
		P50: 1000 * histogram.Quantile(0.5), P99: 1000 * histogram.Quantile(0.99),
	}
}
