// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

const (
	zoneLabel = corev1.LabelTopologyZone
	rackLabel = "example.com/rack"

	// There are never fewer nodes than this, nor more; of those that are out of order in one way
	// there are never more than a few, or nothing could be placed and nothing would be told.
	fewest, most = 16, 28
	fewOut       = 3
)

var (
	zones = []string{"zone-a", "zone-b", "zone-c"}
	racks = []string{"rack-1", "rack-2"}
	// ways to fail, of devcluster's.
	ways = []string{"rejected", "error", "crashloop", "image"}
)

// operator is who looks after the nodes, and what he knows of them.
type operator struct {
	*actor
	made                      int
	nodes                     []string // in order of their making
	cordoned, silent, failing map[string]bool
}

func newOperator(seed uint64) *operator {
	o := &operator{actor: newActor("operator", seed), cordoned: map[string]bool{}, silent: map[string]bool{}, failing: map[string]bool{}}
	o.deeds = map[string]deed{
		"add": o.add, "remove": o.remove, "relabel": o.relabel, "cordon": o.cordon, "uncordon": o.uncordon,
		"silence": o.silence, "wake": o.wake, "break": o.breakOne, "heal": o.heal,
	}
	return o
}

func (o *operator) add(ctx context.Context) (bool, error) {
	if len(o.nodes) == most {
		return false, nil
	}
	o.made++
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", o.made)},
		Status:     corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
	node.Labels = map[string]string{corev1.LabelHostname: node.Name, zoneLabel: o.one(zones), rackLabel: o.one(racks)}
	o.nodes = append(o.nodes, node.Name)
	_, err := o.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return true, err
}

func (a *actor) one(of []string) string { return of[a.IntN(len(of))] }

// any is one of the nodes that pass, "" if there is none.
func (o *operator) any(pass func(string) bool) string {
	some := slices.DeleteFunc(slices.Clone(o.nodes), func(n string) bool { return !pass(n) })
	if len(some) == 0 {
		return ""
	}
	return o.one(some)
}

// isSound says that a node neither is silent nor fails pods: devcluster has each in one way at a time,
// and what it does to a node outlives the node.
func (o *operator) isSound(node string) bool { return !o.silent[node] && !o.failing[node] }

// remove deletes a node and then the pods that were on it.
func (o *operator) remove(ctx context.Context) (bool, error) {
	node := o.any(o.isSound)
	if len(o.nodes) <= fewest || node == "" {
		return false, nil
	}
	if err := o.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return false, err
	}
	o.nodes = slices.DeleteFunc(o.nodes, func(n string) bool { return n == node })
	delete(o.cordoned, node)
	pods, err := o.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return false, err
	}
	for _, p := range pods.Items {
		err := o.client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	return true, nil
}

// relabel moves a node to another place, or takes its rack away.
func (o *operator) relabel(ctx context.Context) (bool, error) {
	rack := fmt.Sprintf("%q", o.one(racks))
	if o.IntN(4) == 0 {
		rack = "null"
	}
	return true, o.patch(ctx, o.one(o.nodes), fmt.Sprintf(`{"metadata":{"labels":{%q:%q,%q:%s}}}`, zoneLabel, o.one(zones), rackLabel, rack))
}

func (o *operator) patch(ctx context.Context, node, patch string) error {
	_, err := o.client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (o *operator) cordon(ctx context.Context) (bool, error) { return o.set(ctx, true) }

func (o *operator) uncordon(ctx context.Context) (bool, error) { return o.set(ctx, false) }

func (o *operator) set(ctx context.Context, cordoned bool) (bool, error) {
	node := o.any(func(n string) bool { return o.cordoned[n] != cordoned })
	if node == "" || (cordoned && len(o.cordoned) == fewOut) {
		return false, nil
	}
	mark(o.cordoned, node, cordoned)
	return true, o.patch(ctx, node, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, cordoned))
}

func mark(nodes map[string]bool, node string, is bool) {
	if is {
		nodes[node] = true
	} else {
		delete(nodes, node)
	}
}

// silence lets a node fall silent, so that it is not ready some time later.
func (o *operator) silence(ctx context.Context) (bool, error) {
	return o.command(ctx, "stop-node", o.silent, true)
}

func (o *operator) wake(ctx context.Context) (bool, error) {
	return o.command(ctx, "start-node", o.silent, false)
}

// breakOne makes the pods that start on a node fail.
func (o *operator) breakOne(ctx context.Context) (bool, error) {
	return o.command(ctx, "fail", o.failing, true, "--as="+o.one(ways))
}

func (o *operator) heal(ctx context.Context) (bool, error) {
	return o.command(ctx, "heal", o.failing, false)
}

// command has devcluster bring a node into some way, or out of it.
func (o *operator) command(ctx context.Context, name string, nodes map[string]bool, into bool, flags ...string) (bool, error) {
	node := o.any(func(n string) bool {
		if into {
			return o.isSound(n)
		}
		return nodes[n]
	})
	if node == "" || (into && len(nodes) == fewOut) {
		return false, nil
	}
	mark(nodes, node, into)
	return true, devcluster(ctx, append([]string{name, node}, flags...)...)
}

// mend puts all nodes right.
func (o *operator) mend(ctx context.Context) error {
	for nodes, undo := range map[*map[string]bool]deed{&o.cordoned: o.uncordon, &o.silent: o.wake, &o.failing: o.heal} {
		for range maps.Clone(*nodes) {
			if _, err := undo(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// ready says which node does not take pods yet.
func (o *operator) ready(ctx context.Context) error {
	list, err := o.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := rig.TakesPods(&list.Items[i]); err != nil {
			return err
		}
	}
	if len(list.Items) != len(o.nodes) {
		return fmt.Errorf("there are %d nodes, want %d", len(list.Items), len(o.nodes))
	}
	return nil
}
