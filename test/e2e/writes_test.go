// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

// Who has changed what is counted by the API server's audit log.

// wrote counts what the scheduler and the controller have changed in the story's namespace, by verb and resource: "create pods/binding".
// It is false on a cluster whose audit log is not at hand.
func (s *story) wrote() (changes map[string]int, ok bool) {
	s.Helper()
	if world.auditLog == "" {
		s.Log("this cluster's audit log is not at hand: writes are not counted")
		return nil, false
	}
	writes, err := rig.Writes(world.auditLog)
	s.must(err, "counting writes")
	changes = make(map[string]int)
	for i := range writes {
		w := &writes[i]
		if w.Object.Namespace != s.ns || !w.Done() || !strings.HasPrefix(w.User.Username, "system:serviceaccount:kube-system:espalier") {
			continue
		}
		what := w.Verb + " " + w.Object.Resource
		if w.Object.Subresource != "" {
			what += "/" + w.Object.Subresource
		}
		changes[what]++
	}
	s.Logf("the scheduler and the controller have made these changes: %v", changes)
	return changes, true
}

// wroteToPods fails the story unless the scheduler and the controller have bound its pods, and changed them in these ways besides. Why a pod
// waits, which any scheduler writes into its status, does not count.
func (s *story) wroteToPods(want map[string]int) {
	s.Helper()
	changes, ok := s.wrote()
	if !ok {
		return
	}
	bindings := changes["create pods/binding"]
	maps.DeleteFunc(changes, func(what string, _ int) bool {
		return !strings.Contains(what, " pods") || what == "create pods/binding" || what == "patch pods/status"
	})
	if bindings == 0 || !maps.Equal(changes, want) {
		s.Errorf("there are %d bindings, and other changes of pods: %v, want %v", bindings, changes, want)
	}
}

// wroteNoPods fails the story if the scheduler or the controller have changed one of its pods but by binding it.
func (s *story) wroteNoPods() {
	s.Helper()
	s.wroteToPods(map[string]int{})
}

// wroteNoReplicas fails the story if anybody has changed what is wanted of a Deployment since it was made, such as its number of replicas.
func (s *story) wroteNoReplicas(app string) {
	s.Helper()
	if n := s.generation(app); n != 1 {
		s.Errorf("the Deployment has been changed %d times", n-1)
	}
}

// generation counts what was wanted of a Deployment so far.
func (s *story) generation(app string) int64 {
	s.Helper()
	d := get[appsv1.Deployment](s, app)
	return d.Generation
}
