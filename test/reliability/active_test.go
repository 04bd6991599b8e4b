// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/rig"
	"github.com/espalier-scheduler/espalier/manifests"
)

// beginActive begins a story of replicas that are active at once, with so many workloads to divide.
func beginActive(t *testing.T, apps int) *story {
	s := begin(t)
	s.apps = nil
	for i := range apps {
		s.apps = append(s.apps, fmt.Sprint("app-", i))
	}
	applier, err := rig.NewApplier(world.config)
	s.Must(err, "applying manifests")
	s.Must(applier.Apply(s.Ctx, manifests.Files, "components/active-active/rbac.yaml", ""), "giving the rights of active replicas")
	return s
}

// active starts a replica that is to be active beside others.
func (s *story) active(name string, perSecond int) *rig.Process {
	s.Helper()
	return s.scheduler(name, world.kubeconfig, perSecond, "--active-active", "-v=2")
}

var (
	// seesReplicas is what a replica logs of itself and others, in one line; the last such line holds.
	seesReplicas = regexp.MustCompile(`"The replicas that place pods have changed" leases=\[([^\]]*)\] placing=(true|false)`)
	// hasBound is what it logs of a pod: its name is that of the Deployment and two hashes.
	hasBound = regexp.MustCompile(`"Successfully bound pod to node" pod="[^/"]+/((app-\d+)-[^"]+)"`)
)

func (s *story) log(p *rig.Process) string {
	s.Helper()
	text, err := os.ReadFile(p.Log)
	s.Must(err, "reading the log of "+p.Name)
	return string(text)
}

// untilActive waits until each of these replicas sees all of them, and places its share.
func (s *story) untilActive(all ...*rig.Process) {
	s.Helper()
	for _, p := range all {
		s.Until(p.Name+" to place its share", func() error {
			seen := seesReplicas.FindAllStringSubmatch(s.log(p), -1)
			if len(seen) == 0 {
				return errors.New("it sees nobody")
			}
			last := seen[len(seen)-1]
			if n := strings.Count(last[1], "espalier-scheduler-"); n != len(all) || last[2] != "true" {
				return fmt.Errorf("it sees %d replicas, and places: %s", n, last[2])
			}
			return nil
		})
	}
}

// bound is which pods a replica has bound, with their workloads.
func (s *story) bound(p *rig.Process) map[string]string {
	s.Helper()
	pods := map[string]string{}
	for _, m := range hasBound.FindAllStringSubmatch(s.log(p), -1) {
		pods[m[1]] = m[2]
	}
	return pods
}

// divided fails the story unless no pod was bound by two of these replicas, and each has bound some.
func (s *story) divided(all ...*rig.Process) (by []map[string]string) {
	s.Helper()
	who := map[string]string{}
	for _, p := range all {
		pods := s.bound(p)
		if len(pods) == 0 {
			s.Errorf("%s has bound no pod", p.Name)
		}
		for pod := range pods {
			if other, twice := who[pod]; twice {
				s.Errorf("pod %s was bound by %s and by %s", pod, other, p.Name)
			}
			who[pod] = p.Name
		}
		by = append(by, pods)
	}
	return by
}

// Two replicas place pods at the same time, and each workload is placed by one of them.
func TestTwoActiveReplicas(t *testing.T) {
	s := beginActive(t, 10)
	first, second := s.active("first", perSecond), s.active("second", perSecond)
	s.untilActive(first, second)
	s.load()
	s.now()
	s.allBound("nothing: two replicas are active")
	s.refusedAtMost(0)
	whose := map[string]int{}
	for i, pods := range s.divided(first, second) {
		for _, app := range pods {
			if of, known := whose[app]; known && of != i {
				s.Fatalf("pods of %s were bound by both replicas", app)
			}
			whose[app] = i
		}
	}
}

// One of two active replicas dies with pods decided and not bound. The other goes on with its own, and with those of the dead
// one when its Lease has run out.
func TestActiveReplicaKilled(t *testing.T) {
	s := beginActive(t, 10)
	first, second := s.active("first", perSecond), s.active("second", perSecond)
	s.untilActive(first, second)
	s.load()
	s.now()
	second.Kill()
	s.ended = append(s.ended, second)
	s.allBound("one of two active replicas is killed")
	s.refusedAtMost(0)
	s.divided(first, second)
}

// One of two active replicas stands still and wakes up when the other has its share: it has to find out before it does harm, and to end.
func TestActiveReplicaPaused(t *testing.T) {
	s := beginActive(t, 10)
	first, second := s.active("first", perSecond/4), s.active("second", perSecond/4)
	s.untilActive(first, second)
	s.load()
	s.now()
	s.Must(second.Pause(), "pausing a replica")
	s.untilActive(first)
	s.Must(second.Resume(), "waking it")
	s.exits(second, 1)
	s.allBound("one of two active replicas is paused, and wakes up")
	s.refusedAtMost(1)
	s.divided(first, second)
}

// A third replica joins two, and with pods to place for all of them a second one goes: the workloads that change hands end as even as the others.
func TestActiveReplicasComeAndGo(t *testing.T) {
	s := beginActive(t, 40) // some of each half are any replica's
	slowly := perSecond / 4 // there are to be pods to place when the second goes
	deploy := func(apps []string) {
		for _, app := range apps {
			s.deploy(app, int32(replicas/len(s.apps)))
		}
	}
	first, second := s.active("first", slowly), s.active("second", slowly)
	s.untilActive(first, second)
	deploy(s.apps[:20])
	s.untilBound(middle)
	third := s.active("third", slowly)
	// It has to wait until the bindings have ended that the others began without it, which are all of these pods: one that is decided waits for
	// its turn at the API server.
	s.untilActive(first, second, third)
	deploy(s.apps[20:])
	s.now()
	s.Must(second.Terminate(), "ending a replica")
	s.exits(second, 0)
	s.untilActive(first, third)
	s.allBound("a third active replica joins, and one is terminated")
	s.refusedAtMost(0)
	s.divided(first, second, third)
}
