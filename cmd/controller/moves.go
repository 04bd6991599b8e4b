// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/controllers/disconnect"
	"github.com/espalier-scheduler/espalier/internal/controllers/drain"
	"github.com/espalier-scheduler/espalier/internal/controllers/move"
	"github.com/espalier-scheduler/espalier/internal/controllers/policy"
	"github.com/espalier-scheduler/espalier/internal/controllers/rebalance"
	"github.com/espalier-scheduler/espalier/internal/controllers/restart"
	"github.com/espalier-scheduler/espalier/internal/controllers/suspect"
	"github.com/espalier-scheduler/espalier/pkg/placement/reschedule"
)

// rebalanceFlags are those about pods that are misplaced.
func (o *options) rebalanceFlags(flags *pflag.FlagSet) {
	r := &o.rebalance
	flags.StringVar(&r.Mode, "rebalance", "", "Enabled replaces pods of Deployments that are misplaced, one at a time, until what is there is even: after a zone has come back, or nodes have joined. ByPolicy does so for the pods of policies with moves.rebalance Enabled. DryRun says in events which pods would be replaced. A policy with moves.rebalance Disabled leaves its pods where they are. Empty replaces none, whatever policies say.")
	flags.StringVar(&o.namespaces, "rebalance-namespace-selector", "", "The namespaces in which pods are replaced for this reason, as a selector of their labels, such as team=web. Empty is all.")
	flags.DurationVar(&r.Quiet, "rebalance-quiet", 2*time.Minute, "How long a Deployment must have been ready and unchanged before one of its pods is replaced.")
	flags.DurationVar(&r.NodeReady, "rebalance-node-ready", 5*time.Minute, "How long a node must have been ready before it is given a pod for this reason.")
	flags.DurationVar(&r.PodAge, "rebalance-pod-age", 5*time.Minute, "How old a pod must be to be replaced.")
	flags.IntVar(&r.PerNode, "rebalance-per-node", 2, "How many pods of one node are replaced at once at most, 1 to 1000.")
	flags.IntVar(&r.PerHour, "rebalance-per-hour", 300, "How many pods are replaced for this reason in an hour at most, 1 to 10000.")
	flags.StringSliceVar(&o.windows, "rebalance-windows", nil, "When pods are replaced, as HH:MM-HH:MM in UTC, such as 22:00-06:00. Empty is always.")
}

// restartFlags are those about pods that fail on faulty nodes.
func (o *options) restartFlags(flags *pflag.FlagSet) {
	r := &o.restart
	flags.StringVar(&r.Mode, "restart-elsewhere", "", "Enabled replaces pods of Deployments that keep failing on a node that is faulty for them, or hang there, on another one. It evicts those that no other one can be ready beside, such as those of StatefulSets. ByPolicy does so for the pods of policies with moves.restart Enabled. A policy with moves.restart Disabled leaves its pods where they are. Empty replaces none, whatever policies say.")
	flags.StringVar(&o.restartIn, "restart-namespace-selector", "", "The namespaces in which pods are replaced for this reason, as a selector of their labels, such as team=web. Empty is all.")
	flags.DurationVar(&r.Policy.Delay, "restart-delay", 30*time.Second, "How long a pod must have failed before it is replaced, the first time.")
	flags.StringVar((*string)(&r.Policy.Function), "restart-delay-function", string(reschedule.Exponential), "How the delay of a workload grows with each attempt: Constant, Exponential or Fibonacci.")
	flags.DurationVar(&r.Policy.MaxDelay, "restart-max-delay", 30*time.Minute, "How long the delay grows. It is the first one again when nothing has failed for that long.")
	flags.IntVar(&r.Policy.Attempts, "restart-attempts", 0, "How many attempts a workload has in an interval, 1 to 1000; 0 is any number.")
	flags.DurationVar(&r.Policy.Interval, "restart-interval", time.Hour, "The interval in which attempts are counted, one hour at the most.")
}

// namespaceSelector reads the flag of a caller that selects namespaces.
func namespaceSelector(caller, text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--%s-namespace-selector %q: %w", caller, text, err)
	}
	return selector, nil
}

// drains reports whether they ask for Moves of pods on nodes that are about to be removed.
func (o *options) drains() bool { return o.drain.Pods != drain.None || o.lifetimes.pool != "" }

// readDrain checks the flags about nodes that are about to be removed.
func (o *options) readDrain() error {
	if !o.drains() {
		return nil
	}
	o.drain.Schedulers = o.schedulers
	var err error
	if o.drain.Namespaces, err = namespaceSelector("move-drained", o.drainIn); err != nil {
		return err
	}
	if err := o.drain.Validate(); err != nil {
		return fmt.Errorf("--move-drained: %w", err)
	}
	return nil
}

// readRestart checks these flags.
func (o *options) readRestart() error {
	if o.restart.Mode == "" {
		return nil
	}
	r := &o.restart
	r.Schedulers, r.Records, r.AtOnce, r.Policy.Unlimited = o.schedulers, o.suspects.Namespace, o.drain.AtOnce, r.Policy.Attempts == 0
	var err error
	if r.Namespaces, err = namespaceSelector("restart", o.restartIn); err != nil {
		return err
	}
	if err := r.Validate(); err != nil {
		return fmt.Errorf("--restart-elsewhere: %w", err)
	}
	return nil
}

// readDisconnect checks the flag about pods on nodes that do not answer.
func (o *options) readDisconnect() error {
	o.disconnect = disconnect.Options{Schedulers: o.schedulers, AtOnce: o.drain.AtOnce}
	if !o.disconnects {
		return nil
	}
	if err := o.disconnect.Validate(); err != nil {
		return fmt.Errorf("--keep-disconnected: %w", err)
	}
	return nil
}

// costFlags are those about deletion costs.
func (o *options) costFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.costs.Mode, "repair-deletion-costs", "", "Repair gives pods of ReplicaSets other deletion costs where some are missing in a zone, or whatever the first level is; Backfill also those that were bound before there were any. Empty changes none.")
	flags.StringVar(&o.costsIn, "repair-namespace-selector", "", "The namespaces in which it does, as a selector of their labels, such as team=web. Empty is all.")
	flags.DurationVar(&o.costs.Quiet, "repair-quiet", time.Minute, "For how long the pods of a ReplicaSet must have been the same.")
}

// readCosts checks these flags.
func (o *options) readCosts() error {
	if o.costs.Mode == "" {
		return nil
	}
	o.costs.Schedulers = o.schedulers
	var err error
	if o.costs.Namespaces, err = namespaceSelector("repair", o.costsIn); err != nil {
		return err
	}
	if err := o.costs.Validate(); err != nil {
		return fmt.Errorf("--repair-deletion-costs: %w", err)
	}
	return nil
}

// moves reports whether the flags ask for any Moves.
func (o *options) moves() bool {
	return o.drains() || o.rebalance.Mode != "" || o.restart.Mode != "" || o.disconnects || o.lifetimes.renew
}

// readRebalance checks these flags.
func (o *options) readRebalance() error {
	if o.rebalance.Mode == "" {
		return nil
	}
	o.rebalance.Schedulers, o.rebalance.AtOnce = o.schedulers, o.drain.AtOnce
	var err error
	if o.rebalance.Namespaces, err = namespaceSelector("rebalance", o.namespaces); err != nil {
		return err
	}
	for _, text := range o.windows {
		w, err := rebalance.ParseWindow(text)
		if err != nil {
			return fmt.Errorf("--rebalance-windows: %w", err)
		}
		o.rebalance.Windows = append(o.rebalance.Windows, w)
	}
	if err := o.rebalance.Validate(); err != nil {
		return fmt.Errorf("--rebalance: %w", err)
	}
	return nil
}

// cached is what is left of the objects in the cache. Filters look at whole nodes and pods, and who looks for failures at their statuses.
func (o *options) cached() map[client.Object]cache.ByObject {
	pods, nodes := policy.Trim, suspect.Trim
	if o.rebalance.Mode != "" || o.restart.Mode != "" || o.disconnects || o.costs.Mode != "" || o.lifetimes.renew || o.arbitrates || o.tenants {
		pods, nodes = wholePod, cache.TransformStripManagedFields()
	}
	if o.lifetimes.claims || o.lifetimes.pool != "" {
		nodes = cache.TransformStripManagedFields()
	}
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}: {Transform: pods}, &corev1.Namespace{}: {Transform: policy.TrimNamespace}, &corev1.Node{}: {Transform: nodes},
	}
}

// wholePod leaves of a pod what others need than who writes statuses. What a pod says of its placement that is not bound is not
// the scheduler's word.
func wholePod(obj any) (any, error) {
	if pod, is := obj.(*corev1.Pod); is {
		pod.ManagedFields = nil
		delete(pod.Annotations, clusterview.DecisionAnnotation) // for people
		if pod.Spec.NodeName == "" {
			delete(pod.Annotations, clusterview.PlacedByAnnotation)
		}
	}
	return obj, nil
}

// addMoves adds the controllers that have pods replaced, if the flags ask for one.
func (o *options) addMoves(ctx context.Context, m manager.Manager) error {
	if there, err := installed(ctx, m.GetRESTMapper(), []string{move.Kind}, o.informers); !there {
		return err
	}
	recorder := m.GetEventRecorder("espalier-controller")
	moves := &move.Reconciler{Client: m.GetClient(), API: m.GetAPIReader(), Events: recorder, Clock: clock.RealClock{}}
	if o.drains() {
		moves.Drains = func(ctx context.Context, pod *corev1.Pod, node *corev1.Node) (bool, error) {
			return o.drain.Replaces(ctx, m.GetClient(), pod, node)
		}
	}
	if err := moves.AddTo(m); err != nil {
		return err
	}
	if o.drains() {
		if err := m.Add(&drain.Controller{Client: m.GetClient(), API: m.GetAPIReader(), Events: recorder, Clock: clock.RealClock{}, Options: o.drain}); err != nil {
			return err
		}
	}
	if o.restart.Mode != "" {
		if err := m.Add(&restart.Controller{Client: m.GetClient(), API: m.GetAPIReader(), Events: recorder, Clock: clock.RealClock{}, Options: o.restart}); err != nil {
			return err
		}
	}
	if o.disconnects {
		if err := disconnect.Index(ctx, m.GetFieldIndexer()); err != nil {
			return err
		}
		if err := m.Add(&disconnect.Controller{
			Client: m.GetClient(), API: m.GetAPIReader(), Events: recorder, Clock: clock.RealClock{},
			Options: o.disconnect,
		}); err != nil {
			return err
		}
	}
	if err := errors.Join(o.addStagger(m), o.addRenewals(m)); err != nil {
		return err
	}
	if o.rebalance.Mode == "" {
		return nil
	}
	return m.Add(&rebalance.Controller{
		Client: m.GetClient(), API: m.GetAPIReader(), Events: recorder, Clock: clock.RealClock{}, Options: o.rebalance,
	})
}
