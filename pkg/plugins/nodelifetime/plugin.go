// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifetime

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/apis/config/validation"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

const (
	// ErrReasonEnds is the reason of a node that ends before the pod's lease does.
	ErrReasonEnds = "node(s) ended before the pod's lease would"
	// ErrReasonMalformed is the reason of a node of which it is not known when it ends.
	ErrReasonMalformed = "node(s) had a malformed annotation " + clusterview.ValidUntilAnnotation
)

// Name is the plugin's name in a profile.
const Name = "NodeLifetime"

// off is the plugin where nothing is a lease. It extends nothing, so that no pod costs anything.
type off struct{}

// Name returns the plugin's name.
func (off) Name() string { return Name }

// NodeLifetime is the plugin.
type NodeLifetime struct {
	clock func() time.Time
	// jobs returns the Job of a pod. It is nil where deadlines are no leases.
	jobs func(namespace, name string) (*batchv1.Job, error)

	mu sync.Mutex // guards last and back
	// last is when the last pod was looked at, and back how often the clock has been put back since the plugin was made.
	last time.Time
	back int
}

var (
	_ fwk.PreFilterPlugin   = &NodeLifetime{}
	_ fwk.FilterPlugin      = &NodeLifetime{}
	_ fwk.ReservePlugin     = &NodeLifetime{}
	_ fwk.EnqueueExtensions = &NodeLifetime{}
	_ fwk.SignPlugin        = &NodeLifetime{}
)

// New makes the plugin from *config.NodeLifetimeArgs.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return By(time.Now)(ctx, obj, handle)
}

// By makes the plugin by another clock than the machine's, for simulations and tests.
func By(clock func() time.Time) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, ok := obj.(*config.NodeLifetimeArgs)
		if !ok {
			return nil, fmt.Errorf("args of plugin %s: want *config.NodeLifetimeArgs, got %T", Name, obj)
		}
		if err := validation.NodeLifetimeArgs(nil, args).ToAggregate(); err != nil {
			return nil, fmt.Errorf("args of plugin %s: %w", Name, err)
		}
		if args.Leases == config.LeasesDisabled {
			return off{}, nil
		}
		pl := &NodeLifetime{clock: clock}
		if err := report(handle); err != nil {
			return nil, fmt.Errorf("plugin %s: %w", Name, err)
		}
		if args.Leases == config.LeasesAnnotationsAndDeadlines {
			known, err := watchJobs(ctx, handle)
			if err != nil {
				return nil, fmt.Errorf("plugin %s: %w", Name, err)
			}
			pl.jobs = known.get
		}
		return pl, nil
	}
}

// Name returns the plugin's name.
func (pl *NodeLifetime) Name() string { return Name }

// SignPod signs a pod by its lease, whatever words it is in.
func (pl *NodeLifetime) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	lease, err := clusterview.LeaseOf(pod, pl.jobs)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	return []fwk.SignFragment{{Key: clusterview.LeaseAnnotation, Value: lease.String()}}, nil
}

// now is the moment of a decision, and how often the clock was put back before it.
func (pl *NodeLifetime) now() (now time.Time, back int) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	now = pl.clock().Round(0) // the end of a node is a time of the wall clock, and so is what comes before it
	if now.Before(pl.last) {
		pl.back++
	}
	pl.last = now
	return now, pl.back
}
