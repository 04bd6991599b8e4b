// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// activeNeeds are the stories of the rights that a scheduler has besides when its replicas are active at once.
var activeNeeds = map[string]need{
	"list leases":   {"joins", joins, nil},
	"get leases":    {"joins", joins, nil},
	"update leases": {"joins", joins, nil},
}

// joins: it takes one of its Leases and keeps it, and places pods when it sees that there is nobody else.
func joins(s *stage) error {
	lease := func() (*coordinationv1.Lease, error) {
		return cluster.client.CoordinationV1().Leases(s.name).Get(s.Context(), s.name+"-0", metav1.GetOptions{})
	}
	var first *coordinationv1.Lease
	if err := s.wait("its Lease", func() (err error) { first, err = lease(); return err }); err != nil {
		return err
	}
	err := s.wait("its Lease to be renewed", func() error {
		now, err := lease()
		if err == nil && now.Spec.RenewTime.Equal(first.Spec.RenewTime) {
			err = errors.New("it is not")
		}
		return err
	})
	if err != nil {
		return err
	}
	return places(s)
}

// TestActiveReplicas wants one of several active replicas to go as told with all rights, and takes each of those away
// that it has besides.
func TestActiveReplicas(t *testing.T) {
	besides := roleObjects(t, "components/active-active/rbac.yaml")
	objects := slices.Concat(schedulerRights(t), besides)
	t.Run("all rights", func(t *testing.T) {
		s := build(t, objects, rig.SchedulerName, nil)
		s.startScheduler("--active-active")
		if err := joins(s); err != nil {
			t.Fatal(err)
		}
		if refused := s.proxy.refusals(); len(refused) > 0 {
			t.Errorf("the roles do not give what it asks for: %v", refused)
		}
	})
	for _, r := range rightsIn(t, besides) {
		n, ok := needOf(r, activeNeeds)
		if !ok {
			t.Errorf("no story needs the right %v: tell one that breaks without, or take it out of the role", r)
			continue
		}
		t.Run(strings.ReplaceAll(fmt.Sprintf("%v breaks %s", r, n.name), "/", "."), func(t *testing.T) {
			t.Parallel()
			s := build(t, objects, rig.SchedulerName, &r)
			s.startScheduler("--active-active")
			s.breaks(n)
		})
	}
}
