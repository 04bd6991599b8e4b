// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

const (
	original       = placementv1alpha1.KeepOriginal
	replacement    = placementv1alpha1.KeepReplacement
	longestRunning = placementv1alpha1.KeepLongestRunning
	bestPlaced     = placementv1alpha1.KeepBestPlaced
)

const (
	// poolLabel is on the nodes of each of the pools that the pods of the table are placed in.
	poolLabel = "e2e.espalier.dev/pool"
	// failsLabel says which of a pod and its replacement fails.
	failsLabel = "e2e.espalier.dev/fails"
)

// situation is what has become of a pod and its replacement when the pod's node is back.
type situation struct {
	name string
	// stays are the strategies under which the pod does, and not its replacement.
	stays []placementv1alpha1.Keep
	// late are those under which that is settled only when the node has been back for ten minutes.
	late []placementv1alpha1.Keep
	// pods are spread over the hosts of a pool.
	pods int32
	pool string
	// fails is the one that does.
	fails string
	// alone says that there is no other host for the replacement.
	alone bool
	// silent is the phase of the Move while the node does not answer.
	silent placementv1alpha1.MovePhase
}

var (
	strategies = []placementv1alpha1.Keep{original, replacement, longestRunning, bestPlaced}
	situations = []situation{
		{name: "both-ready", stays: []placementv1alpha1.Keep{original, longestRunning, bestPlaced}, pods: 3, pool: "three", silent: placementv1alpha1.MoveWaiting},
		{name: "replacement-better-placed", stays: []placementv1alpha1.Keep{original, longestRunning}, pods: 2, pool: "two", silent: placementv1alpha1.MoveWaiting},
		{name: "original-failed", late: strategies, pods: 3, pool: "three", fails: "original", silent: placementv1alpha1.MoveWaiting},
		{name: "replacement-pending", stays: strategies, late: []placementv1alpha1.Keep{replacement}, pods: 3, pool: "three", alone: true, silent: placementv1alpha1.MoveReplacing},
		{name: "replacement-failed", stays: strategies, late: []placementv1alpha1.Keep{replacement}, pods: 3, pool: "three", fails: "replacement", silent: placementv1alpha1.MoveReplacing},
		{name: "newer-revision", pods: 3, pool: "three", silent: placementv1alpha1.MoveWaiting},
	}
)

// cell is a situation under a strategy.
type cell struct {
	*situation
	keep   placementv1alpha1.Keep
	app    string
	before map[string]corev1.Pod
}

// Which of a pod and its replacement stays, in each situation and under each strategy. Each is a Deployment, and all of their nodes are silent at
// the same time.
func TestDisconnectStrategies(t *testing.T) {
	s := begin(t, faults.core(), byZone)
	s.needsFailures()
	three, two := s.pool("three", "zone-a", "zone-b", "zone-c"), s.pool("two", "zone-d", "zone-d")
	cells := s.cells(three[0], two[0])
	s.fails(cells, "original", three[0], "--running")
	for _, node := range three[1:] {
		s.fails(cells, "replacement", node)
	}
	s.pool("two", "zone-e") // a better place than beside the other one

	s.silenced(three[0], two[0])
	s.eachIs(cells, timeout, func(c *cell) placementv1alpha1.MovePhase { return c.silent })
	for _, c := range cells {
		if c.name == "newer-revision" {
			s.roll(c.app, "2")
		}
	}
	var stops []func()
	for _, c := range cells {
		if c.fails != "original" {
			stops = append(stops, s.neverBelow(c.app, int(c.pods)))
		}
	}
	s.devcluster("start-node", three[0], two[0])
	outcome := func(c *cell) placementv1alpha1.MovePhase {
		if slices.Contains(c.stays, c.keep) {
			return placementv1alpha1.MoveUndone
		}
		return placementv1alpha1.MoveDone
	}
	late := func(c *cell) bool { return slices.Contains(c.late, c.keep) }
	s.eachIs(slices.DeleteFunc(slices.Clone(cells), late), timeout, outcome)
	// Those are removed ten minutes after they have ended, which is before the last of the others has.
	s.eachIs(slices.DeleteFunc(slices.Clone(cells), func(c *cell) bool { return !late(c) }), 12*time.Minute, outcome)
	for _, c := range cells {
		s.judged(c)
	}
	for _, stop := range stops {
		stop()
	}
}

// pool makes a node in each of some zones, and returns them.
func (s *story) pool(name string, zones ...string) (nodes []string) {
	s.Helper()
	for _, z := range zones {
		nodes = append(nodes, s.nodes(1, 100, map[string]string{zoneLabel: z, poolLabel: name})...)
	}
	return nodes
}

// cells makes a Deployment for each strategy in each situation, with a pod on the node of its pool that falls silent. Told in short, those that
// take minutes are left out.
func (s *story) cells(three, two string) (all []*cell) {
	s.Helper()
	for i := range situations {
		for _, keep := range strategies {
			if slices.Contains(situations[i].late, keep) && !*wholeFlag {
				continue
			}
			c := &cell{situation: &situations[i], keep: keep}
			c.app = c.name + "-" + strings.ToLower(string(keep))
			s.disconnects(c.app, placementv1alpha1.Disconnect{ReplaceAfterSeconds: new(int32(2)), Keep: keep})
			template := s.template(c.app, "")
			template.Labels[failsLabel] = c.fails
			template.Spec.NodeSelector[poolLabel] = c.pool
			if c.alone {
				oneOnANode(c.app)(&template.Spec)
			}
			s.deployment(c.app, c.pods, template)
			all = append(all, c)
		}
	}
	for _, c := range all {
		s.settled(c.app, int(c.pods))
		if c.before = s.podsOn(c.app, three, two); len(c.before) != 1 {
			s.Fatalf("%s has %d pods on the nodes that fall silent, want one", c.app, len(c.before))
		}
	}
	return all
}

// fails has the pods of the table that are to fail do so on a node.
func (s *story) fails(cells []*cell, which, node string, flags ...string) {
	s.Helper()
	if !slices.ContainsFunc(cells, func(c *cell) bool { return c.fails == which }) {
		return
	}
	s.devcluster(append([]string{"fail", "--as=crashloop", "--selector=" + failsLabel + "=" + which, node}, flags...)...)
	s.Cleanup(func() { s.healLater(node) })
}

// eachIs waits until the Move of each has the phase that it is to have.
func (s *story) eachIs(cells []*cell, limit time.Duration, want func(*cell) placementv1alpha1.MovePhase) {
	s.Helper()
	s.untilWithin(limit, "the Moves to be where they are to be", func() error {
		phases := make(map[string]placementv1alpha1.MoveStatus)
		for _, m := range s.moves() {
			phases[m.Spec.Pod.Name] = m.Status
		}
		for _, c := range cells {
			for pod := range c.before {
				if is := phases[pod]; is.Phase != want(c) {
					return fmt.Errorf("%s is %q and not %s: %s", c.app, is.Phase, want(c), is.Message)
				}
			}
		}
		return nil
	})
}

// judged fails the story unless the one stays that is to.
func (s *story) judged(c *cell) {
	s.Helper()
	o, stays := s.settled(c.app, int(c.pods)), slices.Contains(c.stays, c.keep)
	for name, p := range c.before {
		if is := slices.ContainsFunc(o.Pods, func(other corev1.Pod) bool { return other.UID == p.UID }); is != stays {
			s.Errorf("%s: that the original %s stays is %t, want %t", c.app, name, is, stays)
		} else if stays {
			s.returned(c.before, s.podsOn(c.app, p.Spec.NodeName), 300)
		}
	}
	s.Logf("%-26s %-15s the original stays: %t", c.name, c.keep, stays)
}

// The replacement's node falls silent as well, so that another pod takes its place. When both nodes are back one of the three stays, and never
// the one in the middle.
func TestDisconnectOfAReplacement(t *testing.T) {
	s := begin(t, faults, byZone)
	s.needsFailures()
	nodes := s.nodes(3, 100, zone("zone-a"))
	var cells []*cell
	for _, keep := range strategies {
		c := &cell{situation: &situation{name: "chain", pods: 3, stays: []placementv1alpha1.Keep{original, longestRunning, bestPlaced}}, keep: keep}
		c.app = "chain-" + strings.ToLower(string(keep))
		s.disconnects(c.app, placementv1alpha1.Disconnect{ReplaceAfterSeconds: new(int32(1)), Keep: keep})
		s.deploy(c.app, c.pods, "")
		cells = append(cells, c)
	}
	for _, c := range cells {
		s.eachHas(s.settled(c.app, int(c.pods)), 1, nodes...)
		c.before = s.podsOn(c.app, nodes[0])
	}
	second := s.nodes(1, 100, zone("zone-a"))[0] // which has fewer pods than the others
	waiting := func(*cell) placementv1alpha1.MovePhase { return placementv1alpha1.MoveWaiting }
	s.silenced(nodes[0])
	s.eachIs(cells, timeout, waiting)
	middle := make([]*cell, len(cells))
	for i, c := range cells {
		m := &cell{situation: &situation{name: "middle", pods: c.pods}, keep: c.keep, app: c.app, before: s.podsOn(c.app, second)}
		if len(m.before) != 1 {
			t.Fatalf("%s has %d pods on %s", c.app, len(m.before), second)
		}
		middle[i] = m
	}
	s.silenced(second)
	s.eachIs(middle, timeout, waiting)
	var stops []func()
	for _, c := range cells {
		stops = append(stops, s.neverBelow(c.app, int(c.pods)))
	}
	s.devcluster("start-node", nodes[0], second)
	s.until("all Moves to end", func() error {
		for _, m := range s.moves() {
			if !m.Status.Phase.Ended() {
				return fmt.Errorf("%s is %s: %s", m.Name, m.Status.Phase, m.Status.Message)
			}
		}
		return nil
	})
	for _, c := range slices.Concat(cells, middle) {
		s.judged(c)
	}
	for _, stop := range stops {
		stop()
	}
	s.still(2 * len(cells))
}
