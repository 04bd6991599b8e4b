// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows a person what Espalier does: it starts a cluster and a
// scheduler on this machine, lets things happen to the example workloads, and
// draws where their pods are. It judges every spread by its own arithmetic, and its
// exit status is 0 only if each is as even as it can be.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	keep := flag.Bool("keep", false, "leave the cluster up after the last act, until Ctrl-C")
	record := flag.String("record", "", "write an animated picture of the last acts into this file, as SVG")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Usage: demo [--keep] [--record FILE]\n\nShows the example workloads on a cluster of this machine; needs nothing installed.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: it takes no arguments, and got %q: see demo --help\n", flag.Args())
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// From the first Ctrl-C on the second one ends us at once.
	context.AfterFunc(ctx, stop)
	ctx, leave := context.WithCancel(ctx)
	// A reader that goes away (demo | head) would end us on the spot and leave our
	// folder behind. Notify is never taken back: the last words go nowhere as well.
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, syscall.SIGPIPE)
	go func() {
		<-unheard
		leave()
	}()
	os.Exit(run(ctx, os.Stdout, *keep, *record))
}
