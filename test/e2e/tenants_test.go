// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// tenantsScheduler is the one that all stories about tenants share.
const tenantsScheduler = "e2e-tenants"

// startTenants starts it for the first story that wants it, with the profile of the overlay under another name.
var startTenants = sync.OnceValue(func() (err error) {
	old := []byte("schedulerName: " + rig.SchedulerName)
	if bytes.Count(manifests.TenantsConfig, old) != 1 {
		return fmt.Errorf("the profile has not exactly one line %q", old)
	}
	path := filepath.Join(world.dir, "tenants.yaml")
	if err := os.WriteFile(path, bytes.Replace(manifests.TenantsConfig, old, []byte("schedulerName: "+tenantsScheduler), 1), 0o600); err != nil {
		return err
	}
	flags, url, err := servesMetrics("--config="+path, "--v=2")
	if err != nil {
		return err
	}
	world.tenantsMetrics = url
	world.tenants, err = startScheduler(tenantsScheduler, flags...)
	return err
})

// tenantsPage is what that scheduler counts, once it knows a partition of the story.
func (s *story) tenantsPage() (page string) {
	s.Helper()
	m := *s
	m.share()
	of := &metered{story: s, url: world.tenantsMetrics}
	s.until("the metrics of a partition", func() error {
		page = of.page()
		return errorIf(!strings.Contains(page, fmt.Sprintf("espalier_partition_pods{partition=%q", s.name)), "there are none")
	})
	return page
}

// share has the story's nodes be a partition, in which the pods of its allocations are placed in order.
func (s *story) share() {
	s.Helper()
	if *schedulerFlag != "process" {
		s.Skip("a scheduler that is deployed has another profile")
	}
	s.must(startTenants(), "starting the scheduler of tenants")
	s.scheduler = tenantsScheduler
	p := &placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	p.Spec.NodeSelector.MatchLabels = map[string]string{storyLabel: s.name}
	s.create(p)
}

// units are amounts in which a pod of a story asks for one.
func units(n int64) resource.Quantity {
	return *resource.NewMilliQuantity(n*podMilliCPU, resource.DecimalSI)
}

// reserves makes an allocation for the pods of an app, which reserves so many units if that is not 0.
func (s *story) reserves(app string, n int64, change ...func(*placementv1alpha1.AllocationSpec)) *placementv1alpha1.Allocation {
	s.Helper()
	a := &placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + app}}
	a.Spec.Partition = s.name
	a.Spec.Assignments = []placementv1alpha1.Assignment{{
		NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.ns}}, PodSelector: selects(app),
	}}
	if n > 0 {
		a.Spec.Reserved = corev1.ResourceList{corev1.ResourceCPU: units(n)}
	}
	for _, c := range change {
		c(&a.Spec)
	}
	s.create(a)
	return a
}

// below has an allocation be below another one of the story.
func (s *story) below(app string) func(*placementv1alpha1.AllocationSpec) {
	return func(spec *placementv1alpha1.AllocationSpec) { spec.Partition, spec.Parent = "", s.name+"-"+app }
}

// makingWay counts the pods of the story that were evicted for others, by app.
type makingWay struct {
	mu   sync.Mutex // guards apps, seen
	apps map[string]int
	seen map[types.UID]bool
}

// evictions counts who makes way, until the story ends.
func (s *story) evictions() *makingWay {
	s.Helper()
	m := &makingWay{apps: make(map[string]int), seen: make(map[types.UID]bool)}
	w, err := s.client.CoreV1().Pods(s.ns).Watch(s.ctx, metav1.ListOptions{})
	s.must(err, "watching pods")
	s.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			if pod, is := e.Object.(*corev1.Pod); is && madeWay(pod) {
				m.note(pod)
			}
		}
	}()
	return m
}

func madeWay(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Reason == corev1.PodReasonPreemptionByScheduler
	})
}

func (m *makingWay) note(pod *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.seen[pod.UID] {
		m.seen[pod.UID] = true
		m.apps[pod.Labels["app"]]++
	}
}

// all is how many there were.
func (m *makingWay) all() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.seen)
}

// madeWayAre fails the story unless so many pods have made way in all.
func (s *story) madeWayAre(m *makingWay, want int) {
	s.Helper()
	if n := m.all(); n != want {
		s.Errorf("%d pods made way, want %d", n, want)
	}
}

// of is how many of an app there were.
func (m *makingWay) of(app string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.apps[app]
}

// run waits until so many pods of each app run, and as many others as there are wait.
func (s *story) run(want map[string]int) {
	s.Helper()
	s.until(fmt.Sprint("running ", want), func() error {
		got := make(map[string]int)
		for _, p := range s.podsWith("", "") {
			if p.DeletionTimestamp != nil {
				return fmt.Errorf("%s is leaving", p.Name)
			}
			if p.Status.Phase == corev1.PodRunning {
				got[p.Labels["app"]]++
			}
		}
		for app, n := range want {
			if got[app] != n {
				return fmt.Errorf("running are %v", got)
			}
		}
		return nil
	})
}

// noEvictions fails the story if somebody makes way when the order is computed anew, with all who wait tried again, or, told at its whole
// length, in ten minutes.
func (s *story) noEvictions(m *makingWay) {
	s.Helper()
	before, begun := m.all(), time.Now()
	s.ordered(2)
	if *wholeFlag {
		time.Sleep(time.Until(begun.Add(10 * time.Minute)))
	}
	if after := m.all(); after != before {
		s.Errorf("%d pods made way in %s, though nothing has changed", after-before, time.Since(begun).Round(time.Second))
	}
}

// accepted waits until an allocation's condition Accepted has a status and a reason.
func (s *story) accepted(a *placementv1alpha1.Allocation, status metav1.ConditionStatus, reason string) {
	s.Helper()
	becomes(s, a.Name, "allocation "+a.Name+" to be accepted: "+string(status), func(now *placementv1alpha1.Allocation) error {
		c := meta.FindStatusCondition(now.Status.Conditions, placementv1alpha1.ConditionAccepted)
		return errorIf(c == nil || c.Status != status || c.Reason != reason || now.Status.ObservedGeneration != now.Generation, "it is %+v", c)
	})
}

// running are the names of the pods of an app that run and are to stay.
func (s *story) running(app string) (names []string) {
	s.Helper()
	for _, p := range s.podsOf(app) {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// runningAre waits until just these pods of an app run.
func (s *story) runningAre(app string, want ...string) {
	s.Helper()
	s.until(fmt.Sprintf("%q to run", want), func() error {
		got := s.running(app)
		return errorIf(!slices.Equal(got, want), "running are %q", got)
	})
}

// waits waits until a pod's PodScheduled condition says that it fits nowhere.
func (s *story) waits(app string) {
	s.Helper()
	s.until("a pod of "+app+" to wait", func() error {
		for _, p := range s.podsOf(app) {
			if unschedulable(&p) != "" {
				return nil
			}
		}
		return errors.New("none has been tried in vain")
	})
}
