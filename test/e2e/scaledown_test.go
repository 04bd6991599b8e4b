// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// unequalZones adds zones of ten, five and two nodes.
func (s *story) unequalZones() {
	for i, nodes := range []int{10, 5, 2} {
		s.nodes(nodes, 50, zone(fmt.Sprint("zone-", i)))
	}
}

// scaled has a scheduler place a Deployment, scales it, and returns what is left.
func (s *story) scaled(scheduler string, from, to int) *rig.Observation {
	s.Helper()
	s.deploy("app", int32(from), "", func(spec *corev1.PodSpec) { spec.SchedulerName = scheduler })
	s.settled("app", from)
	s.scale("app", to)
	return s.settled("app", to)
}

func (s *story) deleted(app string) {
	s.Helper()
	s.must(s.client.AppsV1().Deployments(s.ns).Delete(s.ctx, app, metav1.DeleteOptions{}), "deleting Deployment "+app)
	s.settled(app, 0)
}

// 61 pods over unequal zones, scaled in one step: the ReplicaSet's controller removes where most pods share a node, and so
// from the smallest zone. With deletion costs it removes what came last.
func TestScaleDownUnequalZones(t *testing.T) {
	s := begin(t, byZone)
	s.unequalZones()
	s.must(startStock(), "starting the stock scheduler")
	for to, want := range map[int][]int{31: {11, 10, 10}, 41: {14, 14, 13}} {
		stock := s.scaled(corev1.DefaultSchedulerName, 61, to)
		s.Logf("61 to %d with the stock scheduler:\n%s", to, stock.Draw())
		s.deleted("app")
		ours := s.scaled(s.scheduler, 61, to)
		s.Logf("61 to %d with ours:\n%s", to, ours.Draw())
		s.counts(ours, 0, want...)
		s.even(ours)
		if is, was := skew(ours), skew(stock); is > was {
			t.Errorf("61 to %d: zones differ by %d pods, and by %d with the stock scheduler", to, is, was)
		}
		s.deleted("app")
	}
}

// Even after each of 30 single steps.
func TestScaleDownOneByOne(t *testing.T) {
	s := begin(t, byZone)
	s.unequalZones()
	s.deploy("app", 61, "")
	s.settled("app", 61)
	for pods := 60; pods >= 31; pods-- {
		s.scale("app", pods)
		s.even(s.settled("app", pods))
	}
}

// 30 pods over three equal zones, scaled to three, 20 times: never a zone without a pod. By the order of UIDs that is
// three times in four.
func TestScaleDownToThree(t *testing.T) {
	s := begin(t, byZone)
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		s.nodes(3, 50, zone(name))
	}
	for range 20 {
		s.counts(s.scaled(s.scheduler, 30, 3), 0, 1, 1, 1)
		s.deleted("app")
	}
}
