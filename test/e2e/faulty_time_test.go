// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// What becomes of a mark: it fades, it is not of the next revision, and it outlives
// the scheduler that made it.

// A node is repaired. Its mark fades with the window; then one pod is tried on it, and
// when that has proven itself the node is like any other.
func TestNodeIsRepaired(t *testing.T) {
	s := begin(t, faults)
	// As few failures and as long a window as it takes for them to come together on a busy machine.
	const threshold, window = 3, 15 * time.Second
	s.ownScheduler("repaired-"+s.name, s.ownFaults(map[string]any{"threshold": threshold, "windowSeconds": int64(window.Seconds()), "provenAfterSeconds": int64(1)}))
	good, bad := s.bad("rejected", 4, 40)
	lost := s.losses()
	lost.threshold, lost.window = threshold, window
	s.deploy("app", 24, "")
	s.eachHas(s.settled("app", 24), 8, good...)
	s.marked(lost, bad, "Deployment", "app", 24)
	s.lostAtMost(lost, 8, bad) // six are its share of the first batch
	s.heal(bad)
	s.tells(nodeCleared, "Node", bad)
	s.tells(nodeCleared, "Deployment", "app")

	s.scale("app", 27)
	o := s.settled("app", 27)
	if n := o.OnNodes()[bad]; n == 0 {
		s.Errorf("no pod was tried on %s after it was repaired: %v", bad, o.OnNodes())
	}
	s.until("the pod on "+bad+" to prove itself", func() error {
		// Every pod that is put there now shows it; a node on trial takes none.
		o = s.settled("app", s.replicas("app"))
		if n := o.OnNodes()[bad]; n < 4 {
			s.scale("app", s.replicas("app")+1)
			return fmt.Errorf("%s has %d pods", bad, n)
		}
		return nil
	})
	// How many came to the others meanwhile is a matter of how fast the machine is.
	before, each := lost.total(), 10
	for _, n := range o.OnNodes() {
		each = max(each, n)
	}
	s.scale("app", 4*each)
	s.eachHas(s.settled("app", 4*each), each, append(good, bad)...)
	if n := lost.total() - before; n != 0 {
		s.Errorf("%d more pods were lost", n)
	}
}

// replicas is how many pods a Deployment is to have.
func (s *story) replicas(app string) int {
	s.Helper()
	d, err := s.client.AppsV1().Deployments(s.ns).Get(s.ctx, app, metav1.GetOptions{})
	s.must(err, "reading Deployment "+app)
	return int(*d.Spec.Replicas)
}

// The scheduler dies after the mark. Its successor knows what it knew, though nothing
// of the failed pods is left in the API: neither those of a Deployment nor those of a
// StatefulSet, whose controller deletes a pod that failed to make it anew.
func TestSuccessorKnowsTheBadNode(t *testing.T) {
	s := begin(t, faults.core())
	flag := s.ownFaults(map[string]any{})
	first := s.ownScheduler("first-"+s.name, flag)
	good, bad := s.bad("rejected", 4, 60)
	lost := s.losses()
	s.deploy("app", 24, "")
	_, err := s.client.AppsV1().StatefulSets(s.ns).Create(s.ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](12), Selector: selects("db"), ServiceName: "db", Template: s.template("db", ""),
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}, metav1.CreateOptions{})
	s.must(err, "creating StatefulSet")
	s.eachHas(s.settled("app", 24), 8, good...)
	s.eachHas(s.settled("db", 12), 4, good...)
	s.marked(lost, bad, "Deployment", "app", 24)
	s.marked(lost, bad, "StatefulSet", "db", 12)
	s.until("the record of both workloads", func() error {
		list, err := s.client.CoreV1().ConfigMaps(s.ns).List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, c := range list.Items {
			if text := fmt.Sprint(c.Data); strings.Contains(text, bad) && strings.Contains(text, "Deployment.apps/app") && strings.Contains(text, "StatefulSet.apps/db") {
				return nil
			}
		}
		return errors.New("it is not there")
	})
	first.Kill()
	before := lost.total()
	s.forgetFailed()

	s.ownScheduler("second-"+s.name, flag)
	s.scale("app", 48)
	_, err = s.client.AppsV1().StatefulSets(s.ns).Patch(s.ctx, "db", types.MergePatchType, []byte(`{"spec":{"replicas":24}}`), metav1.PatchOptions{})
	s.must(err, "scaling StatefulSet db")
	s.eachHas(s.settled("app", 48), 16, good...)
	s.eachHas(s.settled("db", 24), 8, good...)
	if n := lost.total() - before; n != 0 {
		s.Errorf("the successor lost %d pods on %s, which its predecessor avoided", n, bad)
	}
}

// forgetFailed deletes the failed pods, as a cleaner or the garbage collector does.
func (s *story) forgetFailed() {
	s.Helper()
	failed := metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodFailed)}
	s.must(s.client.CoreV1().Pods(s.ns).DeleteCollection(s.ctx, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, failed), "deleting failed pods")
	s.until("the failed pods to be gone", func() error {
		list, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, failed)
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
}

// Of two schedulers the leader dies while it places pods, some of which fail. The other
// has watched: what is enough to mark the node for one is enough for both.
func TestLeaderChangesUnderLoad(t *testing.T) {
	s := begin(t, faults)
	flag := s.ownFaults(map[string]any{})
	first := s.slowScheduler("first-"+s.name, flag, "--leader-elect=true")
	holder := s.leader("")
	second := s.slowScheduler("second-"+s.name, flag, "--leader-elect=true")
	_, bad := s.bad("rejected", 10, 60)
	lost, seen := s.losses(), s.watch()
	s.deploy("app", 300, "")
	s.untilBound(seen, 100)
	first.Kill()
	if _, bound := seen.Bound(); bound >= 300 {
		s.Fatalf("all pods were bound before the leader was killed, though its rate is limited: this told nothing")
	}
	// How many were on their way when the first failed is a matter of how busy the
	// machine is. Until the Lease runs out nothing is placed, and they all end.
	s.ended(bad, lost)
	before := lost.total()
	s.leader(holder)
	o := s.settled("app", 300)
	after := lost.total() - before
	s.Logf("%d pods were lost before the change, %d after it", before, after)
	if before >= 5 && after > 0 || after > 6 {
		s.Errorf("%d pods were lost before the leader changed, and %d more: five mark a node", before, after)
	}
	if n := o.OnNodes()[bad]; n != 0 {
		s.Errorf("%d pods run on %s", n, bad)
	}
	s.marked(lost, bad, "Deployment", "app", 300)
	s.bindsNoneTwice(second, &o.Pods[0])
	s.onceEach(300)
}

// ended waits until all pods on a node have, and have been counted: the watch that counts
// them is behind a list.
func (s *story) ended(node string, lost *losses) {
	s.Helper()
	s.until("the pods on "+node+" to end", func() error {
		pods, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err != nil {
			return err
		}
		failed := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodFailed {
				failed++
			}
		}
		counted := lost.count(func(l loss) bool { return l.node == node })
		if failed < len(pods.Items) || counted < failed {
			err = fmt.Errorf("of %d pods %d have, and %d are counted", len(pods.Items), failed, counted)
		}
		return err
	})
}

// leader waits until the story's Lease has a holder other than the given one.
func (s *story) leader(other string) string {
	s.Helper()
	var lease *coordinationv1.Lease
	s.until("a leader", func() (err error) {
		lease, err = s.client.CoordinationV1().Leases(s.ns).Get(s.ctx, s.scheduler, metav1.GetOptions{})
		if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || *lease.Spec.HolderIdentity == other) {
			err = errors.New("the Lease has no new holder")
		}
		return err
	})
	return *lease.Spec.HolderIdentity
}
