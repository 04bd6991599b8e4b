// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

// big is a revision that runs on many nodes, and has failed on one of a hundred.
func big(n int) (l *failure.Ledger, nodes []string) {
	l = failure.New(options)
	l.Advance(start)
	for i := range n {
		nodes = append(nodes, fmt.Sprintf("node-%06d", i))
	}
	for i := 0; i < n; i += 100 {
		for k := range 5 {
			l.Fail(web1, nodes[i], failure.Rule{}, failure.Failure{Pod: fmt.Sprint(i, k), Kind: "Error", At: start})
		}
	}
	for i, node := range nodes {
		l.Place(web1, node, fmt.Sprint(i))
		l.Succeed(web1, node, fmt.Sprint(i), start)
	}
	return l, nodes
}

var sizes = []int{1_000, 100_000}

func BenchmarkRecord(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			l, nodes := big(n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l.Record(web1, nodes[i%n])
			}
		})
	}
}

// BenchmarkChanged places a pod, asks what has changed, and takes it away again.
func BenchmarkChanged(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			l, nodes := big(n)
			_, _, version := l.Changed(web1, 0)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				node := nodes[i%n]
				l.Place(web1, node, "new")
				var changed []string
				if changed, _, version = l.Changed(web1, version); len(changed) > 2 {
					b.Fatalf("%d nodes have changed", len(changed))
				}
				l.Gone(web1, node, "new")
			}
		})
	}
}

// BenchmarkFail is a node that rejects all it is given.
func BenchmarkFail(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			l, nodes := big(n)
			pods := make([]string, 1000)
			for i := range pods {
				pods[i] = fmt.Sprint("pod-", i)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now := start.Add(time.Duration(i) * time.Millisecond)
				l.Advance(now)
				l.Fail(web1, nodes[0], failure.Rule{}, failure.Failure{Pod: pods[i%len(pods)], Key: "x", Kind: "Error", At: now})
			}
		})
	}
}
