// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// promcheck evaluates every query of a Grafana dashboard, with Prometheus' own engine,
// over pages of metrics that a test has read one after the other. It names the queries
// that return nothing, and fails if there are any.
//
// The tests beside it see that every alert fires when it should, and only then.
//
// promtool is not built for it: with its clients for every cloud that takes more than ten
// minutes on two cores. What it tests rules with is in packages that take one.
//
// usage: promcheck DASHBOARD PAGE PAGE...
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: promcheck DASHBOARD PAGE PAGE...")
		os.Exit(2)
	}
	silent, asked, err := silentQueries(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "promcheck:", err)
		os.Exit(1)
	}
	for _, query := range silent {
		fmt.Println(query)
	}
	if len(silent) > 0 {
		fmt.Fprintf(os.Stderr, "promcheck: %d of %d queries return nothing: let the story do what they are about, or mend them\n", len(silent), asked)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "promcheck: all %d queries return data\n", asked)
}
