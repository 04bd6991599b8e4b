// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/evenness"
)

// Workload is some pods of one namespace, all alike, and what they are to be even over.
type Workload struct {
	Namespace string
	// Selector is a label selector.
	Selector string
	Levels   []evenness.Level
}

// Observation is where a workload's pods were at one moment.
type Observation struct {
	Levels []evenness.Level
	// Nodes are those that may take the workload's pods, and those that have some.
	Nodes []evenness.Node
	// Pods are the workload's that run or are to run: not ended, not being deleted.
	Pods []corev1.Pod
	// Pending is how many of them have no node, Leaving how many more are being deleted.
	Pending, Leaving int
}

// Check is evenness.Check on what was observed.
func (o *Observation) Check() []string { return evenness.Check(o.Levels, o.Nodes) }

// Draw is evenness.Draw on what was observed.
func (o *Observation) Draw() string { return evenness.Draw(o.Levels, o.Nodes) }

// Settled is nil if there are n pods that have nodes, no more are leaving, and each passes the check.
func (o *Observation) Settled(n int, check func(*corev1.Pod) error) error {
	if len(o.Pods) != n || o.Pending > 0 || o.Leaving > 0 {
		return fmt.Errorf("%d pods of %d, of them %d pending, and %d leaving", len(o.Pods), n, o.Pending, o.Leaving)
	}
	for i := range o.Pods {
		if err := check(&o.Pods[i]); err != nil {
			return err
		}
	}
	return nil
}

// OnNodes is the pods by node.
func (o *Observation) OnNodes() map[string]int {
	counts := map[string]int{}
	for _, p := range o.Pods {
		if p.Spec.NodeName != "" {
			counts[p.Spec.NodeName]++
		}
	}
	return counts
}

// Fix declares what is there now unmovable: it is added to what is judged later.
func (o *Observation) Fix(earlier map[string]int) {
	for i := range o.Nodes {
		o.Nodes[i].Fixed = min(earlier[o.Nodes[i].Name], o.Nodes[i].Count)
	}
}

// ObservePods reads the workload's own pods from the API, and leaves Nodes empty: it is for whoever asks often.
func ObservePods(ctx context.Context, client kubernetes.Interface, w Workload) (*Observation, error) {
	pods, err := client.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: w.Selector})
	if err != nil {
		return nil, fmt.Errorf("counting %s in %s: %w", w.Selector, w.Namespace, err)
	}
	o := &Observation{Levels: w.Levels}
	for i := range pods.Items {
		o.add(&pods.Items[i])
	}
	return o, nil
}

// add counts a pod of the workload, and reports whether it is to stay.
func (o *Observation) add(pod *corev1.Pod) bool {
	switch {
	case ended(pod):
		return false
	case pod.DeletionTimestamp != nil:
		o.Leaving++
		return false
	case pod.Spec.NodeName == "":
		o.Pending++
	}
	o.Pods = append(o.Pods, *pod)
	return true
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Observe reads nodes and pods from the API and counts.
func Observe(ctx context.Context, client kubernetes.Interface, w Workload) (*Observation, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("counting %s in %s: %w", w.Selector, w.Namespace, err)
	}
	all, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("counting %s in %s: %w", w.Selector, w.Namespace, err)
	}
	selector, err := labels.Parse(w.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector %q: %w", w.Selector, err)
	}
	o := &Observation{Levels: w.Levels}
	others := map[string][]corev1.Pod{}
	for i := range all.Items {
		pod := &all.Items[i]
		mine := pod.Namespace == w.Namespace && selector.Matches(labels.Set(pod.Labels))
		if (!mine || !o.add(pod)) && !ended(pod) {
			others[pod.Spec.NodeName] = append(others[pod.Spec.NodeName], *pod)
		}
	}
	o.place(nodes.Items, others)
	return o, nil
}

// place fills Nodes.
func (o *Observation) place(nodes []corev1.Node, others map[string][]corev1.Pod) {
	counts := o.OnNodes()
	for i := range nodes {
		node := &nodes[i]
		count := counts[node.Name]
		room := count
		if len(o.Pods) > 0 {
			switch pod := &o.Pods[0]; {
			case !belongs(pod, node):
				if count == 0 {
					continue
				}
			case takesMore(pod, node):
				room = roomFor(pod, node, others[node.Name])
			}
		}
		values := make([]string, len(o.Levels))
		for l, level := range o.Levels {
			values[l] = node.Labels[level.Name]
		}
		o.Nodes = append(o.Nodes, evenness.Node{Name: node.Name, Values: values, Count: count, Room: room})
	}
}

// belongs reports whether the pod's own selector and affinity allow the node at all.
func belongs(pod *corev1.Pod, node *corev1.Node) bool {
	ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	return err == nil && ok
}

// takesMore reports whether the node accepts new pods.
func takesMore(pod *corev1.Pod, node *corev1.Node) bool {
	if node.Spec.Unschedulable {
		return false
	}
	_, repelled := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	}, false)
	return !repelled
}

// roomFor is how many pods like this one the node holds beside all others on it.
func roomFor(pod *corev1.Pod, node *corev1.Node, others []corev1.Pod) int {
	room := evenness.Unlimited
	if slots, ok := node.Status.Allocatable[corev1.ResourcePods]; ok {
		room = int(slots.Value()) - len(others)
	}
	for name, want := range requests(pod) {
		if want.IsZero() {
			continue
		}
		free := node.Status.Allocatable[name].DeepCopy()
		for i := range others {
			free.Sub(requests(&others[i])[name])
		}
		room = min(room, int(free.MilliValue()/want.MilliValue()))
	}
	return max(room, 0)
}

// requests sums the containers' requests; the workloads judged here have no init containers or overhead.
func requests(pod *corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range pod.Spec.Containers {
		for name, q := range c.Resources.Requests {
			total := resource.Quantity{}
			if have, ok := sum[name]; ok {
				total = have
			}
			total.Add(q)
			sum[name] = total
		}
	}
	return sum
}
