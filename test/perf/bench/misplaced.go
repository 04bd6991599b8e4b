// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/test/perf/judge"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

// misplaced counts the measured pods that lie in the wrong place, over all groups that
// fit somewhere.
func (w *World) misplaced(ctx context.Context) ([]judge.Misplaced, error) {
	pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("counting pods in %s: %w", namespace, err)
	}
	if err := complete(w.workload, pods.Items); err != nil {
		return nil, err
	}
	return misplaced(w.workload, w.nodes, pods.Items)
}

// complete is an error if not all pods that fit somewhere are among these, on nodes: of those
// that are not there none is misplaced. Churn deletes some.
func complete(workload load.Workload, pods []corev1.Pod) error {
	bound := 0
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			bound++
		}
	}
	if want := workload.Fitting(); bound != want && !workload.Churn {
		return fmt.Errorf("counting misplaced pods: %d pods in %s have nodes, and %d were bound", bound, namespace, want)
	}
	return nil
}

func misplaced(workload load.Workload, nodes []*corev1.Node, pods []corev1.Pod) ([]judge.Misplaced, error) {
	counts := map[string]map[string]int{} // by group and node
	lying := map[string][]*corev1.Pod{}   // by node
	for i := range pods {
		if node := pods[i].Spec.NodeName; node != "" {
			lying[node] = append(lying[node], &pods[i])
			group := pods[i].Labels[load.AppLabel]
			if counts[group] == nil {
				counts[group] = map[string]int{}
			}
			counts[group][node]++
		}
	}
	var levels []evenness.Level
	for _, key := range workload.Judged() {
		levels = append(levels, evenness.Level{Name: key})
	}
	var sum []judge.Misplaced
	for group := range workload.Groups {
		on := counts[load.GroupName(group)]
		if !workload.Fits(group) {
			if len(on) > 0 {
				return nil, fmt.Errorf("pods of %s fit nowhere and are on %d nodes", load.GroupName(group), len(on))
			}
			continue
		}
		of := judge.CountMisplaced(levels, views(workload, nodes, group, on, lying))
		if sum == nil {
			sum = of
			continue
		}
		for i := range sum {
			sum[i].Pods += of[i].Pods
		}
	}
	return sum, nil
}

// views are the nodes as one group sees them: on says how many of its pods a node has, and
// lying has all pods of the node.
func views(workload load.Workload, nodes []*corev1.Node, group int, on map[string]int, lying map[string][]*corev1.Pod) []evenness.Node {
	var views []evenness.Node
	for _, node := range nodes {
		// A node that the pods may not run on, and do not, is no part of their world.
		if !workload.Admits(node) && on[node.Name] == 0 {
			continue
		}
		view := evenness.Node{Name: node.Name, Count: on[node.Name], Room: evenness.Unlimited}
		switch {
		case workload.HostPort || workload.Apart || workload.Limited:
			view.Room = 1
		case workload.Mixed:
			// Nothing leaves a node, so that one with room for another pod had it all the time.
			view.Room = view.Count + workload.More(group, node, lying[node.Name])
		}
		if !workload.Admits(node) {
			view.Room = 0
		}
		for _, key := range workload.Judged() {
			view.Values = append(view.Values, node.Labels[key])
		}
		views = append(views, view)
	}
	return views
}
