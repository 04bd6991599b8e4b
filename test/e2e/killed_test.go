// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// bindings remembers every node that every pod of a namespace has ever been on.
type bindings struct {
	mu    sync.Mutex // guards nodes
	nodes map[string]map[string]bool
}

func (b *bindings) saw(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	uid := string(pod.UID)
	if b.nodes[uid] == nil {
		b.nodes[uid] = map[string]bool{}
	}
	if pod.Spec.NodeName != "" {
		b.nodes[uid][pod.Spec.NodeName] = true
	}
}

// bound is the number of pods ever seen, and of those that ever had a node.
func (b *bindings) bound() (pods, bound int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, nodes := range b.nodes {
		if len(nodes) > 0 {
			bound++
		}
	}
	return len(b.nodes), bound
}

// watch starts to remember, until the story ends.
func (s *story) watch() *bindings {
	s.Helper()
	b := &bindings{nodes: map[string]map[string]bool{}}
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(s.ns))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: b.saw, UpdateFunc: func(_, obj any) { b.saw(obj) }})
	s.must(err, "watching pods")
	ctx, cancel := context.WithCancel(s.ctx)
	factory.Start(ctx.Done())
	s.Cleanup(func() { cancel(); factory.Shutdown() })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		s.Fatalf("watching pods: the watch did not start")
	}
	return b
}

// ownProfile writes the shipped profile under another scheduler name, so that
// killing its process disturbs no other story.
func (s *story) ownProfile() (flag string) {
	s.Helper()
	s.scheduler = "e2e-" + s.name
	old := []byte("schedulerName: " + rig.SchedulerName)
	if bytes.Count(manifests.SchedulerConfig, old) != 1 {
		s.Fatalf("the shipped profile has not exactly one line %q", old)
	}
	path := filepath.Join(s.TempDir(), "profile.yaml")
	s.must(os.WriteFile(path, bytes.Replace(manifests.SchedulerConfig, old, []byte("schedulerName: "+s.scheduler), 1), 0o600), "writing the profile")
	return "--config=" + path
}

// The scheduler dies without a word while it places 500 pods, with some decided
// but not bound, and another takes over: it must neither forget one, nor bind
// one twice, nor count one twice.
func TestSchedulerKilledInTheMiddleOf500Pods(t *testing.T) {
	s := begin(t, byZone)
	s.nodes(10, 100, zone("zone-a"))
	s.nodes(5, 100, zone("zone-b"))
	s.nodes(4, 100, zone("zone-c"))
	seen := s.watch()
	profile := s.ownProfile()
	first, err := startScheduler(s.scheduler, profile)
	s.must(err, "starting the first scheduler")
	s.Cleanup(first.Kill)
	s.deploy("app", 500, "spread="+zoneLabel)
	s.untilBound(seen, 120)
	first.Kill()
	_, bound := seen.bound()
	if bound >= 500 {
		s.Fatalf("all pods were bound before the scheduler was killed, though its rate is limited: this told nothing")
	}
	s.Logf("killed with %d of 500 pods bound", bound)

	second, err := startScheduler(s.scheduler, profile)
	s.must(err, "starting the second scheduler")
	s.Cleanup(func() {
		if err := second.Stop(15 * time.Second); err != nil {
			s.Error(err)
		}
	})
	o := s.settled("app", 500)
	s.counts(o, 0, 167, 167, 166)
	s.even(o)
	if pods, bound := seen.bound(); pods != 500 || bound != 500 {
		s.Errorf("there were %d pods, %d of them bound, want 500 of each: a pod was lost and replaced", pods, bound)
	}
	for uid, nodes := range seen.nodes {
		if len(nodes) != 1 {
			s.Errorf("pod %s was on %d nodes: %v", uid, len(nodes), nodes)
		}
	}
	s.onceEach()
}

// untilBound returns as soon as so many pods have nodes.
func (s *story) untilBound(seen *bindings, n int) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		_, bound := seen.bound()
		if bound >= n {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%d of %d pods were bound after %s", bound, n, patience)
		}
	}
}

// onceEach fails the story if any pod was announced as bound more than once.
func (s *story) onceEach() {
	s.Helper()
	events, err := s.client.EventsV1().Events(s.ns).List(s.ctx, metav1.ListOptions{})
	s.must(err, "listing events")
	times := map[string]int{}
	for _, e := range events.Items {
		if e.Reason == "Scheduled" {
			times[fmt.Sprint(e.Regarding.UID)]++
		}
	}
	for uid, n := range times {
		if n > 1 {
			s.Errorf("pod %s was announced as scheduled %d times", uid, n)
		}
	}
}
