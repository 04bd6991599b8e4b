// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/pkg/placement/ownership"
)

// sharing is the part of one replica of several: it is told which there are.
type sharing struct {
	mu      sync.Mutex // guards what follows
	members []string
	changed func()
}

// The replica that is tested, and another one.
const (
	thisReplica  = "replica-0"
	otherReplica = "replica-1"
)

// set settles which replicas there are, and tells nobody.
func (s *sharing) set(members ...string) (tell func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = members
	if s.changed == nil {
		return func() {}
	}
	return s.changed
}

// Name is the plugin's name in a profile.
func (s *sharing) Name() string { return "ActiveReplicas" }

// Identity is that of this replica.
func (s *sharing) Identity() string { return thisReplica }

// Owns reports whether a pod is this replica's to place.
func (s *sharing) Owns(pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ownership.Owner(clusterview.OwnershipKey(pod), s.members) == thisReplica
}

// Begin is called before a pod is bound.
func (s *sharing) Begin(pod *corev1.Pod) (end func(), ok bool) { return func() {}, s.Owns(pod) }

// OnChange has a function called when other pods than before are its own.
func (s *sharing) OnChange(changed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = changed
}

func (s *sharing) plugin(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return s, nil
}

// PreEnqueue lets the pods in that are this replica's.
func (s *sharing) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if s.Owns(pod) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "another replica places it")
}

// EventsToRegister lists nothing: what is to be told is told by OnChange.
func (s *sharing) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// replicaDeeds are those of another replica that comes and goes. Whoever hears of it tries all pods again that wait, which is not to be often: it would
// hide that the scheduler has missed what helps them.
func (a *actor) replicaDeeds(of *sharing) map[string]func(context.Context) {
	return map[string]func(context.Context){
		"come": func(context.Context) {
			if a.rarely(60) {
				of.set(thisReplica, otherReplica)()
			}
		},
		"go": func(context.Context) {
			if of.shared() && a.rarely(10) {
				of.set(thisReplica)()
			}
		},
	}
}

// shared reports that there is another replica.
func (s *sharing) shared() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.members) > 1
}
