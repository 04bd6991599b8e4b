// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
	_ "time/tzdata" // there is none in the image

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/espalier-scheduler/espalier/internal/controllers/lease"
	"github.com/espalier-scheduler/espalier/internal/controllers/nodeclaim"
	"github.com/espalier-scheduler/espalier/internal/controllers/stagger"
	placementstagger "github.com/espalier-scheduler/espalier/pkg/placement/stagger"
)

// lifetimes are the flags about when nodes end.
type lifetimes struct {
	// claims is whether nodes get the ends of their NodeClaims.
	claims bool
	// renew is whether leases are renewed. renewIn is read into the options.
	renew    bool
	renewIn  string
	renewals lease.Options
	// pool is which nodes get ends by a schedule, "" for none. It, schedule and zone are read into the options.
	pool, schedule, zone string
	stagger              stagger.Options
}

// lifetimeFlags are those.
func (o *options) lifetimeFlags(flags *pflag.FlagSet) {
	l := &o.lifetimes
	flags.BoolVar(&l.claims, "node-claims", false, "Whether nodes of Karpenter are given an end: when their NodeClaim expires.")
	flags.BoolVar(&l.renew, "renew-leases", false, "Whether the leases of pods are renewed that ask for it. A pod of a Deployment whose node does not live long enough is replaced on another one.")
	flags.StringVar(&l.renewIn, "renew-namespace-selector", "", "The namespaces in which leases are renewed, as a selector of their labels, such as team=web. Empty is all.")
	flags.StringVar(&l.pool, "stagger-ends", "", "The nodes that are given ends on several days, as a selector of their labels, such as pool=blue. When a node has reached its end it is cordoned, and waits for a reboot when its pods are moved. Empty gives none.")
	flags.StringVar(&l.schedule, "stagger-ends-schedule", "mon,tue,wed,thu,fri,sat,sun", "When such nodes may end, as days with a time or without, such as sat,sun/10:30. A day without a time is 23:59:59.")
	flags.StringVar(&l.zone, "stagger-ends-time-zone", "UTC", "The time zone of these days, such as Europe/Berlin.")
	flags.DurationVar(&l.stagger.Rule.Lifetime, "stagger-ends-lifetime", 21*24*time.Hour, "How long such a node runs at most until it is rebooted.")
	flags.DurationVar(&l.stagger.Rule.Least, "stagger-ends-least", 24*time.Hour, "How long such a node runs at least.")
	flags.StringVar(&l.stagger.Domain, "stagger-ends-domain", corev1.LabelTopologyZone, "The label of whose values each is a domain.")
	flags.IntVar(&l.stagger.Rule.PerDomain, "stagger-ends-per-domain", 1, "How many such nodes of one domain are out of service at once at most, 1 to 1000.")
	flags.DurationVar(&l.stagger.DrainFor, "stagger-ends-drain-for", time.Hour, "How long the pods of such a node are waited for until it is left to be rebooted, with the pods that are left.")
}

// readLifetimes checks these flags.
func (o *options) readLifetimes() error {
	l := &o.lifetimes
	if l.renew {
		l.renewals.Schedulers, l.renewals.AtOnce, l.renewals.Allocations = o.schedulers, o.drain.AtOnce, o.tenants
		var err error
		if l.renewals.Namespaces, err = namespaceSelector("renew", l.renewIn); err != nil {
			return err
		}
		if err := l.renewals.Validate(); err != nil {
			return fmt.Errorf("--renew-leases: %w", err)
		}
	}
	if l.pool == "" {
		return nil
	}
	l.stagger.Schedulers = o.schedulers
	var err error
	if l.stagger.Nodes, err = labels.Parse(l.pool); err != nil {
		return fmt.Errorf("--stagger-ends %q: %w", l.pool, err)
	}
	if l.stagger.Nodes.Empty() {
		return fmt.Errorf("--stagger-ends %q: this selects all nodes: name a label of those that are given ends, such as pool=blue", l.pool)
	}
	zone, err := time.LoadLocation(l.zone)
	if err != nil {
		return fmt.Errorf("--stagger-ends-time-zone %q: %w: use a name such as UTC or Europe/Berlin", l.zone, err)
	}
	if l.stagger.Schedule, err = placementstagger.ParseSchedule(l.schedule, zone); err != nil {
		return fmt.Errorf("--stagger-ends-schedule: %w", err)
	}
	if err := l.stagger.Validate(); err != nil {
		return fmt.Errorf("--stagger-ends: %w", err)
	}
	return nil
}

// addLifetimes adds the controller that writes on Karpenter's nodes when these end, if the flags ask for it.
func (o *options) addLifetimes(m ctrl.Manager) error {
	if !o.lifetimes.claims {
		return nil
	}
	return m.Add(&nodeclaim.Controller{Client: m.GetClient(), Events: m.GetEventRecorder("espalier-controller")})
}

// addStagger adds the controller that gives nodes their ends, if the flags ask for it. Nobody would empty the nodes that it cordons where no Moves
// can be made.
func (o *options) addStagger(m ctrl.Manager) error {
	if o.lifetimes.pool == "" {
		return nil
	}
	return m.Add(&stagger.Controller{Client: m.GetClient(), Events: m.GetEventRecorder("espalier-controller"), Clock: clock.RealClock{}, Options: o.lifetimes.stagger})
}

// addRenewals adds the controller that renews leases, if the flags ask for it.
func (o *options) addRenewals(m ctrl.Manager) error {
	if !o.lifetimes.renew {
		return nil
	}
	return m.Add(&lease.Controller{
		Client: m.GetClient(), API: m.GetAPIReader(), Events: m.GetEventRecorder("espalier-controller"), Clock: clock.RealClock{},
		Options: o.lifetimes.renewals,
	})
}
