// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package suspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
)

const (
	// every is the time between two looks at the records. A scheduler writes its record every two
	// seconds at the most.
	every = 5 * time.Second
	// calling is how long a call to the API server may take.
	calling = 10 * time.Second
)

// Options are what a Controller goes by.
type Options struct {
	// Schedulers are the schedulers whose suspects are tainted, by schedulerName.
	Schedulers []string
	// Namespace is where their records are.
	Namespace string
	// Effect is that of the taint, PreferNoSchedule or NoSchedule.
	Effect corev1.TaintEffect
	// MaxPerHour and MaxNodes bound the nodes that are tainted for one scheduler, in an hour and at once.
	MaxPerHour, MaxNodes int
}

// Validate returns what is wrong with the options, nil if nothing is.
func (o Options) Validate() error {
	if o.Effect != corev1.TaintEffectPreferNoSchedule && o.Effect != corev1.TaintEffectNoSchedule {
		// NoExecute would end the pods that run there well.
		return fmt.Errorf("the effect of the taint is %q: use %s or %s", o.Effect, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoSchedule)
	}
	for _, bound := range []struct {
		what string
		n    int
	}{{"nodes tainted in an hour", o.MaxPerHour}, {"nodes tainted at once", o.MaxNodes}} {
		if bound.n < 1 || bound.n > record.MaxSuspects {
			return fmt.Errorf("%d is no bound of %s: use 1 to %d", bound.n, bound.what, record.MaxSuspects)
		}
	}
	return nil
}

// Controller taints the suspects of some schedulers.
type Controller struct {
	// Records reads from the API server: a cache would need the right to list all ConfigMaps.
	Records client.Reader
	// Nodes lists nodes, which may be from a cache, and patches them.
	Nodes client.Client
	Clock clock.PassiveClock
	Options

	// added is when the nodes were tainted for a scheduler, which a cache may not know yet.
	added map[string]map[string]time.Time
	// unread are the schedulers whose records could not be read, and of which the log says so.
	unread sets.Set[string]
}

// Start looks at the records until the context ends.
func (c *Controller) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, c.look, every)
	return nil
}

// look has the taints of all schedulers as their records say. One whose record cannot be read
// keeps its taints.
func (c *Controller) look(ctx context.Context) {
	for _, scheduler := range c.Schedulers {
		logger := klog.FromContext(ctx).WithValues("scheduler", scheduler)
		suspects, err := c.suspects(ctx, scheduler)
		if err != nil {
			if !c.unread.Has(scheduler) {
				logger.Error(err, "The suspects of a scheduler are not known; its taints stay as they are")
			}
			c.unread = c.unread.Union(sets.New(scheduler))
			continue
		}
		c.unread.Delete(scheduler)
		if err := c.taint(klog.NewContext(ctx, logger), scheduler, suspects); err != nil {
			logger.Error(err, "Tainting suspects")
		}
	}
}

// suspects are those in a scheduler's record, none without one.
func (c *Controller) suspects(ctx context.Context, scheduler string) (sets.Set[string], error) {
	r, err := ReadRecord(ctx, c.Records, c.Namespace, scheduler)
	if err != nil {
		return nil, err
	}
	return sets.New(r.Suspects...), nil
}

// ReadRecord reads the record of failures that a scheduler keeps in a namespace, an empty one where there is none.
func ReadRecord(ctx context.Context, api client.Reader, namespace, scheduler string) (*record.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, calling)
	defer cancel()
	var object corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: scheduler + record.Suffix}
	if err := api.Get(ctx, key, &object); err != nil {
		if apierrors.IsNotFound(err) {
			return record.New(), nil
		}
		return nil, fmt.Errorf("reading ConfigMap %v: %w", key, err)
	}
	r, err := record.Decode([]byte(object.Data[record.Key]))
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %v: %s: %w", key, record.Key, err)
	}
	return r, nil
}

// nodes are all nodes, by name.
func (c *Controller) nodes(ctx context.Context) ([]corev1.Node, error) {
	var list corev1.NodeList
	if err := c.Nodes.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// Trim leaves of a node what a taint is decided by, and whether it is about to be removed, for a cache.
func Trim(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Conditions: node.Status.Conditions},
	}, nil
}
