// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

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

// times is how often a story repeats what depends on chance.
func times(n int) int {
	if *oftenFlag {
		return n
	}
	return 2
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
		if to == 31 {
			s.beside(evennessCases[3], byZones(stock), byZones(ours))
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
	for range times(20) {
		s.counts(s.scaled(s.scheduler, 30, 3), 0, 1, 1, 1)
		s.deleted("app")
	}
}

// Zones of three, two and one rack: what is left is even over zones, and over the racks of each.
func TestScaleDownOverTwoLevels(t *testing.T) {
	s := begin(t, byZone, byRack)
	for z, racks := range []int{3, 2, 1} {
		for r := range racks {
			s.nodes(1, 50, map[string]string{zoneLabel: fmt.Sprint("zone-", z), rackLabel: fmt.Sprintf("rack-%d-%d", z, r)})
		}
	}
	s.deploy("app", 60, "spread="+zoneLabel+",spread="+rackLabel)
	s.settled("app", 60)
	s.scale("app", 24)
	o := s.settled("app", 24)
	s.counts(o, 0, 8, 8, 8)
	s.even(o)
}

// Shares of 70 and 30 hold when 100 pods become ten.
func TestScaleDownKeepsShares(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(3, 50, zone("zone-a"))
	s.nodes(3, 50, zone("zone-b"))
	s.deploy("app", 100, "spread="+zoneLabel+";weight.zone-a=70;weight.zone-b=30")
	s.settled("app", 100)
	s.scale("app", 10)
	s.exactly(s.settled("app", 10), 0, map[string]int{"zone-a": 7, "zone-b": 3})
}

// 20 pods become three the moment the last one is ready: their costs are as old as their bindings. Whoever writes them later loses
// this race now and then.
func TestScaleDownTheMomentAllAreReady(t *testing.T) {
	s := begin(t, byZone)
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		s.nodes(3, 50, zone(name))
	}
	for range times(50) {
		s.deploy("app", 20, "")
		ready, err := s.client.CoreV1().Pods(s.ns).Watch(s.ctx, metav1.ListOptions{LabelSelector: "app=app"})
		s.must(err, "watching pods")
		s.untilReady(ready, 20)
		s.scale("app", 3)
		s.counts(s.settled("app", 3), 0, 1, 1, 1)
		s.deleted("app")
	}
}

// untilReady returns with the event that makes so many pods ready.
func (s *story) untilReady(events watch.Interface, pods int) {
	s.Helper()
	defer events.Stop()
	ready := make(map[string]bool)
	for limit := time.After(timeout); len(ready) < pods; {
		select {
		case e, open := <-events.ResultChan():
			pod, is := e.Object.(*corev1.Pod)
			if !open || !is {
				s.Fatalf("the watch of pods has ended: %v", e)
			}
			if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
				ready[pod.Name] = true
			}
		case <-limit:
			s.Fatalf("%d of %d pods were ready after %s", len(ready), pods, timeout)
		}
	}
}

// Each revision is even by itself when a Deployment is scaled down in the middle of a rolling update.
func TestScaleDownWhileRolling(t *testing.T) {
	s := begin(t, byZone)
	s.unequalZones()
	s.deploy("app", 60, "")
	s.settled("app", 60)
	// As many of the new pods start as the surge and what may be unavailable let through, and then none: no pod is available before an hour.
	s.patch("app", `{"spec":{"minReadySeconds":3600,"progressDeadlineSeconds":7200,"template":{"metadata":{"annotations":{"e2e.espalier.dev/revision":"2"}}}}}`)
	s.until("new pods", func() error {
		d, err := s.client.AppsV1().Deployments(s.ns).Get(s.ctx, "app", metav1.GetOptions{})
		if err == nil && (d.Status.UpdatedReplicas < 15 || d.Status.UnavailableReplicas < 15) {
			err = fmt.Errorf("%d are there, %d are not available", d.Status.UpdatedReplicas, d.Status.UnavailableReplicas)
		}
		return err
	})
	s.scale("app", 20)
	s.until("each revision to be even", func() error {
		pods, err := s.client.CoreV1().Pods(s.ns).List(s.ctx, metav1.ListOptions{LabelSelector: "app=app"})
		if err != nil {
			return err
		}
		if len(pods.Items) > 25 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		revisions := make(map[string]map[string]int)
		for i := range pods.Items {
			p := &pods.Items[i]
			node, err := s.client.CoreV1().Nodes().Get(s.ctx, p.Spec.NodeName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			revision := p.Labels["pod-template-hash"]
			if revisions[revision] == nil {
				revisions[revision] = map[string]int{"zone-0": 0, "zone-1": 0, "zone-2": 0}
			}
			revisions[revision][node.Labels[zoneLabel]]++
		}
		for revision, zones := range revisions {
			counts := slices.Collect(maps.Values(zones))
			if slices.Max(counts)-slices.Min(counts) > 1 {
				return fmt.Errorf("revision %s has %v", revision, zones)
			}
		}
		if len(revisions) != 2 {
			return rig.Never(fmt.Errorf("there are %d revisions", len(revisions)))
		}
		return nil
	})
}

// Three nodes die and their pods are replaced. What is left after that is even, and nobody has written to a pod.
func TestScaleDownAfterLoss(t *testing.T) {
	s := begin(t, byZone)
	var all [][]string
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		all = append(all, s.nodes(4, 50, zone(name)))
	}
	s.deploy("app", 60, "")
	s.settled("app", 60)
	s.lose(all[0][0], all[0][1], all[1][0])
	s.settled("app", 60)
	s.scale("app", 20)
	s.counts(s.settled("app", 20), 0, 7, 7, 6)
	s.wroteNoPods()
}

// Nobody of ours writes to a pod but by its binding, however it is scaled.
func TestScaleDownWritesNoPods(t *testing.T) {
	s := begin(t, byZone)
	for _, name := range []string{"zone-a", "zone-b", "zone-c"} {
		s.nodes(10, 50, zone(name))
	}
	s.deploy("app", 0, "")
	for _, pods := range []int{1000, 300, 1000} {
		s.scale("app", pods)
		s.even(s.settled("app", pods))
	}
	s.wroteNoPods()
}

// wroteNoPods fails the story if the scheduler or the controller have changed one of its pods but by binding it.
func (s *story) wroteNoPods() {
	s.Helper()
	if world.auditLog == "" {
		s.Log("this cluster's audit log is not at hand: writes are not counted")
		return
	}
	writes, err := rig.Writes(world.auditLog)
	s.must(err, "counting writes")
	bindings, others := 0, make(map[string]int)
	for _, w := range writes {
		if w.Object.Resource != "pods" || w.Object.Namespace != s.ns {
			continue
		}
		switch ours := strings.HasPrefix(w.User.Username, "system:serviceaccount:kube-system:espalier"); {
		case ours && w.Verb == "create" && w.Object.Subresource == "binding":
			bindings++
		case ours:
			others[w.User.Username+" "+w.Verb+" "+w.Object.Subresource]++
		}
	}
	s.Logf("%d bindings, and other writes of ours: %v", bindings, others)
	if bindings == 0 || len(others) > 0 {
		s.Errorf("there are %d bindings, and other writes to pods: %v", bindings, others)
	}
}

// A template with a cost of its own is left alone, and an Event on the Deployment says so.
func TestScaleDownWithForeignCosts(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(2, 50, zone("zone-a"))
	template := s.template("app", "")
	template.Annotations[corev1.PodDeletionCost] = "7"
	s.deployment("app", 3, template)
	o := s.settled("app", 3)
	for i := range o.Pods {
		if a := o.Pods[i].Annotations; a[corev1.PodDeletionCost] != "7" || a["espalier.dev/deletion-ordinal"] != "" {
			t.Errorf("pod %s has %v", o.Pods[i].Name, a)
		}
	}
	s.tells("DeletionCostForeign", "Deployment", "app")
}

// Whatever is left of a StatefulSet is even, though its pods came all at once.
func TestScaleDownOfAStatefulSet(t *testing.T) {
	s := begin(t, byZone)
	for i, nodes := range []int{3, 2, 1} {
		s.nodes(nodes, 50, zone(fmt.Sprint("zone-", i)))
	}
	_, err := s.client.AppsV1().StatefulSets(s.ns).Create(s.ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(9)), Selector: selects("app"), Template: s.template("app", ""), PodManagementPolicy: appsv1.ParallelPodManagement},
	}, metav1.CreateOptions{})
	s.must(err, "creating StatefulSet app")
	s.counts(s.settled("app", 9), 0, 3, 3, 3)
	for _, pods := range []int{6, 3} {
		_, err := s.client.AppsV1().StatefulSets(s.ns).Patch(s.ctx, "app", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, pods), metav1.PatchOptions{})
		s.must(err, "scaling StatefulSet app")
		s.counts(s.settled("app", pods), 0, pods/3, pods/3, pods/3)
	}
}
