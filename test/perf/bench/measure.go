// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/test/perf/judge"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

const (
	warmUpLimit = 3 * time.Minute
	pollEvery   = 100 * time.Millisecond
)

// Measure runs one of the world's workloads with one scheduler, once, and leaves the world
// as it was.
func (w *World) Measure(ctx context.Context, workload load.Workload, c Candidate, round int) (run judge.Run, err error) {
	w.workload, c.tenants = workload, workload.Allocated
	run = judge.Run{Workload: w.workload.Name, Scheduler: c.Name, Round: round, Pods: w.workload.Fitting()}
	if err := w.hold(ctx); err != nil {
		return run, err
	}
	if err := w.attack(ctx, c); err != nil {
		return run, err
	}
	stopController, err := w.controller(ctx)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, stopController()) }()
	r, err := c.start(w.kubeconfig, filepath.Join(w.logs, workload.Name), workload)
	if err != nil {
		return run, err
	}
	ended := false
	defer func() {
		if !ended {
			err = errors.Join(err, r.stop())
		}
	}()
	if err := w.prepare(ctx, c, r); err != nil {
		return run, err
	}
	before, err := w.read(ctx, r)
	if err != nil {
		return run, err
	}
	finish := w.profiled(ctx, c, r)
	if run.Seconds, err = w.play(ctx, c, r); err != nil {
		return run, errors.Join(err, finish())
	}
	if err := finish(); err != nil {
		return run, err
	}
	after, err := w.read(ctx, r)
	if err != nil {
		return run, err
	}
	run.CPUSeconds, run.ServerCPUSeconds, run.PeakRSS = after.cpu-before.cpu, after.serverCPU-before.serverCPU, after.peakRSS
	run.AllCPUSeconds, run.Growth = after.cpu, after.peakRSS-before.rss
	run.Algorithm = algorithmBetween(before.algorithm, after.algorithm)
	// The watch tells of a binding before its call has returned: of few pods, none may have yet.
	err = rig.Poll(ctx, endTimeout, pollEvery, c.Name+" to have a histogram of bindings among its metrics", func() error {
		if run.Binding = algorithmBetween(before.binding, after.binding); run.Binding.Count > 0 {
			return nil
		}
		now, err := w.read(ctx, r)
		after.binding = now.binding
		return cmp.Or(err, errors.New("it has bound no pod yet"))
	})
	if err != nil {
		return run, err
	}
	ended = true
	if err := r.stop(); err != nil {
		return run, err
	}
	if run.Misplaced, err = w.misplaced(ctx); err != nil {
		return run, err
	}
	return run, w.clear(ctx)
}

// prepare brings a scheduler to where the clock starts: all pods lie in its queue, or,
// where they come while it works, it has bound a first one.
func (w *World) prepare(ctx context.Context, c Candidate, r *running) error {
	if w.workload.Trickles() {
		if err := w.release(ctx); err != nil {
			return err
		}
		return w.warmUp(ctx, c, r)
	}
	if err := w.createAll(ctx, c); err != nil {
		return err
	}
	return w.queued(ctx, r, w.workload.Queued())
}

// warmUp waits until the scheduler has bound a first pod: it has read all there is.
func (w *World) warmUp(ctx context.Context, c Candidate, r *running) error {
	const name = "warm-up"
	ctx, cancel := context.WithTimeoutCause(ctx, warmUpLimit, fmt.Errorf("%s did not bind its first pod within %s; its log is %s", c.Name, warmUpLimit, r.Log))
	defer cancel()
	if _, err := w.client.CoreV1().Pods(crowdNamespace).Create(ctx, load.Lone(name, c.profile()), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating pod %s/%s: %w", crowdNamespace, name, err)
	}
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		select {
		case <-r.Done():
			return false, r.Err()
		default:
		}
		pod, err := w.client.CoreV1().Pods(crowdNamespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName != "", err
	})
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if err := w.client.CoreV1().Pods(crowdNamespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		return fmt.Errorf("deleting pod %s/%s: %w", crowdNamespace, name, err)
	}
	return nil
}

// play has the pods bound. It says how many seconds that took: from the first to the last
// of those that lay in the queue, or from when the first was created.
func (w *World) play(ctx context.Context, c Candidate, r *running) (seconds float64, err error) {
	bound, err := w.watchBinds(ctx)
	if err != nil {
		return 0, err
	}
	defer bound.stop()
	// What goes on beside is over before the next step begins.
	beside, end := context.WithCancel(ctx)
	group, beside := errgroup.WithContext(beside)
	defer func() {
		end()
		err = errors.Join(err, group.Wait())
	}()
	if w.workload.Churn {
		waste := make(chan string, 1)
		bound.waste = waste
		group.Go(func() error { return w.churn(beside, waste) })
	}
	if w.workload.Claims {
		if err := w.provision(beside, group); err != nil {
			return 0, err
		}
	}
	if !w.workload.Trickles() {
		if err := w.release(ctx); err != nil {
			return 0, err
		}
		err := bound.until(beside, w.workload.Fitting(), r, w.progress)
		return bound.last.Sub(bound.first).Seconds(), err
	}
	start := time.Now()
	if w.workload.OneByOne {
		for i := range w.workload.Pods() {
			if err := w.create(ctx, c, i); err != nil {
				return 0, err
			}
			if err := bound.until(beside, i+1, r, w.progress); err != nil {
				return 0, err
			}
		}
		return bound.last.Sub(start).Seconds(), nil
	}
	// All pods must have come before the run is over: one that came later would be
	// among the pods of the next.
	makers, making := errgroup.WithContext(beside)
	makers.Go(func() error { return w.createAll(making, c) })
	err = bound.until(making, w.workload.Fitting(), r, w.progress)
	if err != nil {
		end()
	}
	return bound.last.Sub(start).Seconds(), errors.Join(err, makers.Wait())
}
