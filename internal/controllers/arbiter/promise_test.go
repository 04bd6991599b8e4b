// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

// cluster is an API server whose watch is late, and whose bindings are.
type cluster struct {
	t      *rapid.T
	clock  *clocktesting.FakeClock
	ledger *Ledger
	pods   map[string]*corev1.Pod
	// shown are what the watch has to tell yet, and asked the bindings that were admitted, in order. Each is late by half of unseen at most.
	shown, asked []late
}

type late struct {
	at time.Time
	do func()
}

// tell has the watch show a pod, or that it is gone.
func (c *cluster) tell(do func()) { c.shown = append(c.shown, late{c.clock.Now(), do}) }

// next does the first of what is late, if there is any.
func next(of *[]late) {
	if len(*of) > 0 {
		first := (*of)[0]
		*of = slices.Delete(*of, 0, 1)
		first.do()
	}
}

// bind asks for a pod to be bound to a node, as often as somebody likes, and has that be done later, as if by several schedulers.
func (c *cluster) bind(name, node string, dryRun, fails bool) {
	p := c.pods[name]
	if p == nil {
		return
	}
	if p.Spec.NodeName != "" { // who asks does not know yet
		p = onNode(p, "")
	}
	reasons, _ := c.ledger.try(c.t.Context(), p, node, nil, dryRun)
	if len(reasons) > 0 || dryRun || fails {
		return
	}
	c.asked = append(c.asked, late{c.clock.Now(), func() {
		if c.pods[name] != p { // bound to another node meanwhile, gone, or another one of its name
			return
		}
		bound := onNode(p, node)
		c.pods[name] = bound
		c.tell(func() { c.ledger.SetPod(bound) })
	}})
}

// remove deletes a pod, or has it end.
func (c *cluster) remove(name string, ends bool) {
	p := c.pods[name]
	if p == nil {
		return
	}
	delete(c.pods, name)
	if ends {
		p = p.DeepCopy()
		ended(p)
		c.tell(func() { c.ledger.SetPod(p) })
	}
	c.tell(func() { c.ledger.RemovePod(p.UID) })
}

// pass has time pass: nothing comes later than it may.
func (c *cluster) pass(seconds int) {
	for range seconds {
		c.clock.Step(time.Second)
		for _, of := range []*[]late{&c.asked, &c.shown} {
			for len(*of) > 0 && c.clock.Since((*of)[0].at) >= unseen/2-time.Second {
				next(of)
			}
		}
		c.ledger.Expire()
	}
}

// Whatever is late, sent again, or fails, no node gets more than it has; and when all is quiet, all that is free is given away.
func TestNoRoomIsPromisedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := clocktesting.NewFakeClock(time.Unix(0, 0))
		c := &cluster{t: t, clock: now, ledger: NewLedger(now), pods: make(map[string]*corev1.Pod)}
		nodes := []string{"n0", "n1"}[:rapid.IntRange(1, 2).Draw(t, "nodes")]
		for _, n := range nodes {
			c.ledger.SetNode(nodeOf(n, 1000))
		}
		made := 0
		draw := func(label string, below int) int { return rapid.IntRange(0, below-1).Draw(t, label) }
		pod := func() string { return fmt.Sprint("p", draw("pod", 2)) }
		node := func() string { return nodes[draw("node", len(nodes))] }
		used := func(node string) (milli int64) {
			for _, p := range c.pods {
				if p.Spec.NodeName == node {
					milli += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
				}
			}
			return milli
		}
		t.Repeat(map[string]func(*rapid.T){
			"a pod": func(*rapid.T) {
				name := pod()
				if c.pods[name] != nil {
					return
				}
				made++
				p := podOf(fmt.Sprint(name, "-", made), 600)
				c.pods[name] = p
				c.tell(func() { c.ledger.SetPod(p) })
			},
			"a binding":   func(*rapid.T) { c.bind(pod(), node(), draw("dry run", 4) == 0, draw("fails", 2) == 0) },
			"it is made":  func(*rapid.T) { next(&c.asked) },
			"it is shown": func(*rapid.T) { next(&c.shown) },
			"gone":        func(*rapid.T) { c.remove(pod(), draw("ends", 2) == 0) },
			"time":        func(*rapid.T) { c.pass(1 + 8*draw("long", 2)) },
			"": func(t *rapid.T) {
				for _, n := range nodes {
					if u := used(n); u > 1000 {
						t.Fatalf("%s has 1000, and %d are used", n, u)
					}
				}
			},
		})
		c.pass(30)
		for _, n := range nodes {
			free := 1000 - used(n)
			for ask, want := range map[int64]bool{free: true, free + 1: false} {
				if reasons, _ := c.ledger.try(t.Context(), podOf("probe", ask), n, nil, true); (len(reasons) == 0) != want {
					t.Fatalf("of %s %d are free, and a pod of %d is admitted: %t", n, free, ask, !want)
				}
			}
		}
	})
}
