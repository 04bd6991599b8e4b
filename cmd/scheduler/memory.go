// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is by how many percent the memory in use grows before it is collected, where GOGC
// does not say. Go's own is 100.
//
// A scheduler holds the cluster, and beside that what the bindings and Events that are under way
// need. Ours binds four times as many pods a second as kube-scheduler, and so makes four times as
// much garbage: with 100, a backlog of 3,000 pods on 5,000 nodes took 213 to 226 MiB where
// kube-scheduler took 182; with 70, 195 to 206 where it took 200, with the same processor time
// within noise (`make perf ONLY=Workloads60,Workloads500,Workloads2000`).
const gcPercent = 70

func collectGarbageSooner() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
