// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"fmt"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

func ExampleLedger() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	l := failure.New(failure.Options{Rule: failure.Rule{Threshold: 5, Window: 5 * time.Minute}, OwnErrors: true})
	web := failure.Revision{Workload: "default/Deployment/web", Revision: "7d4b9"}

	for i := range 5 {
		l.Advance(noon.Add(time.Duration(i) * time.Second))
		f := failure.Failure{Pod: fmt.Sprint("uid-", i), Kind: "OutOfcpu", At: noon.Add(time.Duration(i) * time.Second)}
		if _, first := l.Fail(web, "node-7", failure.Rule{}, f); first {
			l.Place(web, "node-3", "uid-a")
		}
	}
	for _, m := range l.Marks() {
		fmt.Printf("%s is faulty for %s: %d failures, %v\n", m.Node, m.Workload, m.Failures, m.Kinds)
	}

	next, _ := l.Next()
	l.Advance(next)
	fmt.Printf("%s: %d marks, %+v\n", next.Sub(noon), len(l.Marks()), l.Record(web, "node-7"))
	// Output:
	// node-7 is faulty for default/Deployment/web: 5 failures, [{OutOfcpu 5}]
	// 5m0s: 0 marks, {Failures:4 Unforgiven:5 Proven:false Unproven:0}
}

func ExampleLedger_Changed() {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	l := failure.New(failure.Options{Rule: failure.Rule{Threshold: 5, Window: 5 * time.Minute}})
	l.Advance(now)
	web := failure.Revision{Workload: "default/Deployment/web", Revision: "7d4b9"}
	l.Fail(web, "node-7", failure.Rule{}, failure.Failure{Pod: "uid-1", At: now})

	nodes, anew, version := l.Changed(web, 0)
	fmt.Println(nodes, anew)
	l.Place(web, "node-3", "uid-2")
	nodes, anew, version = l.Changed(web, version)
	fmt.Println(nodes, anew)
	l.Forget(web)
	nodes, anew, _ = l.Changed(web, version)
	fmt.Println(nodes, anew)
	// Output:
	// [node-7] false
	// [node-3] false
	// [] true
}
