// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"k8s.io/klog/v2"
)

// redirectLogs sends what the parts in this process log to a file, and with verbose
// to the terminal too. It is one file for all of Kubernetes: klog is one per process.
func redirectLogs(file string, verbose bool) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	var out io.Writer = f
	level := "1"
	if verbose {
		out, level = io.MultiWriter(f, os.Stderr), "2"
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{
		"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL", "v": level,
	} {
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("setting up the log: %w", err)
		}
	}
	// klog hands a line to every severity below its own; one of them is enough.
	klog.SetOutputBySeverity("INFO", out)
	for _, severity := range []string{"WARNING", "ERROR", "FATAL"} {
		klog.SetOutputBySeverity(severity, io.Discard)
	}
	log.SetOutput(out)
	return nil
}
