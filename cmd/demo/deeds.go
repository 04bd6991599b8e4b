// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

const (
	// timeout is how long any one thing may take before the demo gives up.
	timeout = 60 * time.Second

	// jobRuns is how long the Job's pods run: played by KWOK they would be through
	// before anybody could look at them.
	jobRuns = "30s"
)

// runsFor tells devcluster how long the pods of a Job run.
func runsFor(obj *unstructured.Unstructured, duration string) error {
	return unstructured.SetNestedField(obj.Object, duration,
		"spec", "template", "metadata", "annotations", "devcluster.espalier.dev/run-for")
}

// scale sets the number of a workload's pods.
func (p *play) scale(ctx context.Context, w workload, replicas int) error {
	return p.patch(ctx, w, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// restart changes the pod template, as `kubectl rollout restart` does.
func (p *play) restart(ctx context.Context, w workload) error {
	return p.patch(ctx, w, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"demo.espalier.dev/restarted-at":%q}}}}}`, time.Now().Format(time.RFC3339)))
}

func (p *play) patch(ctx context.Context, w workload, patch string) (err error) {
	switch w.kind {
	case deployment:
		_, err = p.client.AppsV1().Deployments(namespace).Patch(ctx, w.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	case statefulSet:
		_, err = p.client.AppsV1().StatefulSets(namespace).Patch(ctx, w.name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	default:
		err = errors.New("only Deployments and StatefulSets can be changed")
	}
	if err != nil {
		return fmt.Errorf("changing %s %s: %w", w.kind, w.name, err)
	}
	return nil
}

// close cordons all nodes of a zone, or uncordons them, and waits until their taints say so, too.
func (p *play) close(ctx context.Context, zone string, closed bool) error {
	selector := metav1.ListOptions{LabelSelector: corev1.LabelTopologyZone + "=" + zone}
	nodes, err := p.client.CoreV1().Nodes().List(ctx, selector)
	if err != nil {
		return fmt.Errorf("listing the nodes of %s: %w", zone, err)
	}
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, closed)
	for _, n := range nodes.Items {
		if _, err := p.client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("cordoning node %s: %w", n.Name, err)
		}
	}
	return p.until(ctx, "the taints of "+zone, func() error {
		nodes, err := p.client.CoreV1().Nodes().List(ctx, selector)
		if err != nil {
			return err
		}
		for _, n := range nodes.Items {
			if tainted := len(n.Spec.Taints) > 0; tainted != closed {
				return fmt.Errorf("node %s has not changed its taints yet", n.Name)
			}
		}
		return nil
	})
}

// rolledOut waits until the workload's controller says that the update is through.
func (p *play) rolledOut(ctx context.Context, w workload) error {
	return p.until(ctx, "the rolling update of "+w.name, func() error {
		if w.kind == statefulSet {
			s, err := p.client.AppsV1().StatefulSets(namespace).Get(ctx, w.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			p.say.progress(int(s.Status.UpdatedReplicas), int(*s.Spec.Replicas), "pods of "+w.name+" replaced")
			return updated(s.Generation, s.Status.ObservedGeneration, *s.Spec.Replicas, s.Status.UpdatedReplicas, s.Status.Replicas, s.Status.AvailableReplicas)
		}
		d, err := p.client.AppsV1().Deployments(namespace).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		p.say.progress(int(d.Status.UpdatedReplicas), int(*d.Spec.Replicas), "pods of "+w.name+" replaced")
		return deploymentUpdated(d)
	})
}

func deploymentUpdated(d *appsv1.Deployment) error {
	return updated(d.Generation, d.Status.ObservedGeneration, *d.Spec.Replicas, d.Status.UpdatedReplicas, d.Status.Replicas, d.Status.AvailableReplicas)
}

func updated(generation, observed int64, want, updated, all, available int32) error {
	if observed < generation || updated != want || all != want || available != want {
		return fmt.Errorf("of %d pods wanted there are %d, %d of them updated, %d available", want, all, updated, available)
	}
	return nil
}

// settled waits until the workload has so many pods, all on nodes and running, and none that leave.
func (p *play) settled(ctx context.Context, w workload, pods int) (*rig.Observation, error) {
	var o *rig.Observation
	err := p.until(ctx, fmt.Sprintf("%d pods", pods), func() (err error) {
		o, err = rig.Observe(ctx, p.client, rig.Workload{Namespace: namespace, Selector: w.selector, Levels: w.levels})
		if err != nil {
			return err
		}
		running := 0
		for _, pod := range o.Pods {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		p.say.progress(running, pods, "pods of "+w.name+" running")
		if len(o.Pods) != pods || running != pods || o.Leaving > 0 {
			return fmt.Errorf("there are %d, of them %d running and %d without a node, and %d leave", len(o.Pods), running, o.Pending, o.Leaving)
		}
		return nil
	})
	return o, err
}

// until polls: nil ends it, and so does a process that has died.
func (p *play) until(ctx context.Context, what string, check func() error) error {
	for deadline := time.Now().Add(timeout); ; {
		last := check()
		if last == nil {
			return nil
		}
		if err := p.ended(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s for %s: %w", timeout, what, last)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
