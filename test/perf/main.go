// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command perf measures our scheduler beside the stock scheduler and one that decides
// nothing, in one run, on the same pods. make perf runs it; docs/performance.md
// says what its rows mean.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/progress"
	"github.com/espalier-scheduler/espalier/test/perf/bench"
	"github.com/espalier-scheduler/espalier/test/perf/judge"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

// options are what the command line says.
type options struct {
	scale  string
	rounds int
	only   []string
	check  bool
	// profile has our scheduler profiled.
	profile bool
	// bin has our binaries, tools the two schedulers that are for the benchmark only.
	bin, tools string
	// out takes perf.json, perf.md and the logs.
	out string
	// progress shows how far is what takes longer.
	progress bench.Progress
}

func main() {
	klog.SetOutput(io.Discard) // client-go's own remarks would break up the progress
	klog.LogToStderr(false)
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o, os.Stdout)
		cancel()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "perf:", err)
		os.Exit(1)
	}
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	var only string
	flags := flag.NewFlagSet("perf", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.scale, "scale", "default", "number of nodes: tiny is 24, small 200, default 5000, huge 20000")
	flags.Func("rounds", "how often each scheduler runs each workload; some are run 5 or 9 times at the least (default: 3, and 1 at the scales tiny and small)", func(text string) (err error) {
		if o.rounds, err = strconv.Atoi(text); err != nil || o.rounds < 1 {
			return errors.New("it is a number, one at least")
		}
		return nil
	})
	flags.StringVar(&only, "only", "", "names of workloads, separated by commas; empty for all")
	flags.BoolVar(&o.check, "check", false, "fail if a promise about the ratios is not kept")
	flags.BoolVar(&o.profile, "profile", false, "profile espalier-scheduler, 10 s of each workload, into perf below the folder of --out")
	flags.StringVar(&o.bin, "bin", "bin", "folder of espalier-scheduler and devcluster")
	flags.StringVar(&o.tools, "tools", "_output/perf", "folder of kube-scheduler, nullscheduler and nullwebhook")
	flags.StringVar(&o.out, "out", "_output", "folder for perf.json, perf.md and, in perf/logs, the logs")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag: workloads are named by --only", flags.Arg(0))
	}
	if _, known := load.Scales[o.scale]; !known {
		return o, fmt.Errorf("--scale=%q: it is tiny, small, default or huge", o.scale)
	}
	switch {
	case o.rounds == 0 && load.Scales[o.scale] < load.Scales["default"]:
		o.rounds = 1 // a look
	case o.rounds == 0:
		o.rounds = 3
	}
	o.only = strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
	if only != "" && len(o.only) == 0 {
		return o, fmt.Errorf("--only=%q names no workload", only)
	}
	return o, nil
}

// run measures, prints the tables and writes the files.
func run(ctx context.Context, o options, out io.Writer) error {
	begin := time.Now()
	bar := progress.New(out)
	defer bar.End()
	o.progress = bar.Show
	say := func(format string, args ...any) {
		bar.Line(fmt.Sprintf("[%7s] %s", time.Since(begin).Round(time.Second), fmt.Sprintf(format, args...)))
	}
	report, failed := measure(ctx, o, say)
	if failed != nil && len(report.Runs) == 0 {
		return failed
	}
	// What took an hour to measure must not be lost because what came next was not measured.
	if failed != nil {
		report.Ended = failed.Error()
	}
	fmt.Fprintf(out, "\n%s\n", report.Markdown())
	if err := errors.Join(failed, write(report, o.out)); err != nil {
		return err
	}
	missed := judge.Missed(report.Verdicts)
	for _, verdict := range missed {
		fmt.Fprintln(out, verdict)
	}
	if o.check && len(missed) > 0 {
		return fmt.Errorf("%d of %d promises are not kept", len(missed), len(report.Verdicts))
	}
	return nil
}
