// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// Five of 50 nodes are silent for three minutes. Pods that a policy keeps go on as if nothing had been. Of the stock scheduler's, those that
// tolerate it for a minute are killed, and those that tolerate it for five are not.
func TestPartitionOfThreeMinutes(t *testing.T) {
	begin(t, faults, byZone).partition(3*time.Minute, map[string]stockApp{
		"stock-60":  {tolerates: lasting(time.Minute, 5*time.Second), killed: true},
		"stock-300": {tolerates: 5 * time.Minute},
	})
}

// They are silent for ten minutes: all of the stock scheduler's pods are killed, and none that a policy keeps.
func TestPartitionOfTenMinutes(t *testing.T) {
	begin(t, faults, byZone).partition(10*time.Minute, map[string]stockApp{
		"stock-60":  {tolerates: lasting(time.Minute, 5*time.Second), killed: true},
		"stock-300": {tolerates: lasting(5*time.Minute, 12*time.Second), killed: true},
	})
}

// stockApp is a Deployment of the stock scheduler, without a policy.
type stockApp struct {
	// tolerates is for how long its pods tolerate that their node does not answer.
	tolerates time.Duration
	// killed says that they are killed for it.
	killed bool
}

// silentZone is a zone with so many nodes, of which so many fall silent.
type silentZone struct{ nodes, silent int }

// partition has nodes fall silent, for as long as it is said, or, told in short, until all has happened that is to. Then they come back.
func (s *story) partition(lasts time.Duration, stock map[string]stockApp) {
	s.Helper()
	s.needsFailures()
	s.must(startStock(), "starting the stock scheduler")
	var gone []string
	for i, z := range sized([]silentZone{{20, 2}, {20, 2}, {10, 1}}, []silentZone{{4, 1}, {4, 1}, {2, 0}}) {
		gone = append(gone, s.nodes(z.nodes, 50, zone(fmt.Sprint("zone-", i)))[:z.silent]...)
	}
	s.disconnects("app", placementv1alpha1.Disconnect{
		ReplaceAfterSeconds: new(int32(lasting(30*time.Second, 2*time.Second).Seconds())), LostAfterSeconds: 3600, Keep: placementv1alpha1.KeepOriginal,
	})
	pods := map[string]int32{"app": sized[int32](100, 20)}
	s.deploy("app", pods["app"], "")
	for app, a := range stock {
		pods[app] = sized[int32](50, 20)
		s.deploy(app, pods[app], "", by(corev1.DefaultSchedulerName), deletedAfter(int64(a.tolerates.Seconds())))
	}
	before := make(map[string]map[string]corev1.Pod)
	for app, n := range pods {
		s.settled(app, int(n))
		before[app] = s.podsOn(app, gone...)
		s.Logf("%s has %d pods on the nodes that fall silent", app, len(before[app]))
	}

	s.closed(gone...)
	begun := time.Now()
	s.silenced(gone...)
	// The Moves of one Deployment come one after the other, and all are to wait before the nodes are back.
	s.awaitingWithin(max(timeout, lasting(lasts, 0)), "app", len(before["app"]), int(pods["app"]))
	s.Logf("all of the other pods are ready %s after the nodes were last heard of", time.Since(begun).Round(time.Second))
	for app, a := range stock {
		if a.killed {
			s.untilWithin(10*time.Minute, "the pods of "+app+" to be deleted", func() error { return leaving(s.podsOn(app, gone...), true) })
		}
	}
	time.Sleep(lasting(time.Until(begun.Add(lasts)), 0))
	for app := range pods {
		if !stock[app].killed {
			s.must(leaving(s.podsOn(app, gone...), false), "looking at the pods of "+app)
		}
	}
	s.Logf("the nodes have been silent for %s", time.Since(begun).Round(time.Second))

	s.devcluster(append([]string{"start-node"}, gone...)...)
	s.moved(len(before["app"]), placementv1alpha1.MoveUndone)
	for _, node := range gone {
		s.taint(node, "[]")
	}
	s.even(s.settled("app", int(pods["app"])))
	s.returned(before["app"], s.podsOn("app", gone...), 300)
	s.wroteNoReplicas("app")
	for app, a := range stock {
		s.settled(app, int(pods[app]))
		kept := s.podsOn(app, gone...)
		maps.DeleteFunc(kept, func(name string, p corev1.Pod) bool { return before[app][name].UID != p.UID })
		s.Logf("%s: %d of %d pods are killed", app, len(before[app])-len(kept), len(before[app]))
		if a.killed && len(kept) > 0 || !a.killed && len(kept) < len(before[app]) {
			s.Errorf("%s: %d of %d pods are left", app, len(kept), len(before[app]))
		}
	}
	s.wrote()
}

// leaving returns an error unless all pods are being deleted, or none.
func leaving(pods map[string]corev1.Pod, want bool) error {
	for name, p := range pods {
		if is := p.DeletionTimestamp != nil; is != want {
			return fmt.Errorf("pod %s is being deleted: %t", name, is)
		}
	}
	return nil
}
