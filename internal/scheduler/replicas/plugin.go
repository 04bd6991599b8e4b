// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the plugin's name in a profile.
const Name = "ActiveReplicas"

// plugin keeps the pods of other replicas out of what is tried. They wait where gated pods do, so that the nodes for which
// they are nominated are known.
type plugin struct{ *Replicas }

var (
	_ fwk.PreEnqueuePlugin  = plugin{}
	_ fwk.EnqueueExtensions = plugin{}
)

// AddFlag adds the flag that enables the plugin, see preflight.
func AddFlag(flags *pflag.FlagSet) {
	flags.Bool(Flag, false, "Whether all replicas place pods, each those of its own workloads, instead of one that leads. It needs leader election, "+
		fmt.Sprintf("by which each replica holds one of the Leases RESOURCENAME-0 to RESOURCENAME-%d.", Most-1))
}

// Plugin makes the plugin, and switches the replicas on. It has no arguments.
func (r *Replicas) Plugin(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = true
	return plugin{r}, nil
}

// Name returns the plugin's name.
func (plugin) Name() string { return Name }

// PreEnqueue lets the pods in that are this replica's.
func (p plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if p.Owns(pod) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "another replica of the scheduler places the pods of this workload")
}

// EventsToRegister lists what makes a pod that waits this replica's: a change of its labels or its owner, which say of what workload
// it is. The queue has no event for owners alone. When the share of a replica changes, its pods are activated.
func (p plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: p.becomesOurs}}, nil
}

func (p plugin) becomesOurs(_ klog.Logger, _ *corev1.Pod, _, after any) (fwk.QueueingHint, error) {
	if pod, ok := after.(*corev1.Pod); ok && !p.Owns(pod) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
