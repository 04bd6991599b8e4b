// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Ten thousand pods of two hundred allocations are in order in less than 50 ms of a processor, objects and all. Whatever else the machine does
// takes time, and no processor time of this process.
func TestTenThousandPodsWithin50Milliseconds(t *testing.T) {
	var all []*Allocation
	var pods []*corev1.Pod
	for i := range 200 {
		team := fmt.Sprint("team", i)
		all = append(all, of(team, "p", reserving("10")))
		for j := range 50 {
			pods = append(pods, pod(fmt.Sprint(team, "-", j), team, "1", ""))
		}
	}
	nodes := []*corev1.Node{node("n", "p", "4")}
	nodes[0].Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("10k")
	tree := NewTree([]*Partition{partition("p", "p")}, all)
	best := time.Hour
	for begin := time.Now(); best > 50*time.Millisecond && time.Since(begin) < 10*time.Second; {
		start := processorTime(t)
		if got := len(arrange(tree, nodes, pods...).Queues[0].Entries); got != 10_000 {
			t.Fatalf("there are %d pods", got)
		}
		best = min(best, processorTime(t)-start)
	}
	if best > 50*time.Millisecond {
		t.Errorf("it took %s of a processor", best)
	}
}

// processorTime is what this process has had so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
