// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(map[string]string{"rapid.checks": "500", "rapid.steps": "200"})
	m.Run()
}

const (
	lasts     = 15 * time.Second
	most      = 3 // Leases that there are, and replicas that are alive at once
	workloads = 6
)

func workload(i int) string { return fmt.Sprint("default/Deployment.apps/web-", i) }

// world is an API server with Leases, and replicas that take them, renew them and list them, each step of which may come
// at any time or never.
type world struct {
	now      time.Time
	leases   []Lease
	replicas []*replica
	serial   int
}

// replica is one process. What it has asked for, and not been answered, is kept as it was asked.
type replica struct {
	*Members
	lease    string    // "" until it holds one
	until    time.Time // until when its fence is open
	gone     bool
	renewing *renewal
	listing  []Lease // nil if no list was asked for
	bindings []binding
}

type binding struct{ workload, generation int }

type renewal struct {
	asked        time.Time
	acknowledges []string
	stored       bool
}

func (w *world) find(name string) *Lease {
	i := slices.IndexFunc(w.leases, func(l Lease) bool { return l.Name == name })
	if i < 0 {
		w.leases = append(w.leases, Lease{Name: name})
		i = len(w.leases) - 1
	}
	return &w.leases[i]
}

// open reports that a replica's writes are let through: its Lease is not over. One that is over is never renewed.
func (w *world) open(r *replica) bool { return !r.gone && r.lease != "" && w.now.Before(r.until) }

// writing are the replicas that may begin to bind pods of a workload, or have begun and may not be through.
func (w *world) writing(of int) (holders []string) {
	for _, r := range w.replicas {
		begun := slices.ContainsFunc(r.bindings, func(b binding) bool { return b.workload == of })
		if w.open(r) && (begun || r.Owns(workload(of), w.now)) {
			holders = append(holders, r.holder)
		}
	}
	return holders
}

func (w *world) start() {
	w.replicas = slices.DeleteFunc(w.replicas, func(r *replica) bool { return r.gone })
	if len(w.replicas) == most {
		return
	}
	w.serial++
	w.replicas = append(w.replicas, &replica{Members: NewMembers(fmt.Sprint("replica-", w.serial), 2*time.Second)})
}

// acquire takes a Lease as an election does: one that is vacant, or that it has seen unchanged for as long as it lasts.
func (w *world) acquire(r *replica, name string) {
	l := w.find(name)
	free := l.Holder == "" || !w.now.Before(l.Renewed.Add(lasts)) // it was seen as soon as it was renewed
	if r.gone || r.lease != "" || !free {
		return
	}
	*l = Lease{Name: name, Holder: r.holder, Renewed: w.now, Duration: lasts, Acknowledges: r.Acknowledged()}
	r.lease, r.until = name, w.now.Add(lasts)
}

// renew goes one step further: it is asked for, it is stored, it is answered.
func (w *world) renew(r *replica) {
	switch {
	case r.gone || r.lease == "":
	case !w.open(r): // a Lease that is over is final: the process ends
		r.gone = true
	case r.renewing == nil:
		r.renewing = &renewal{asked: w.now, acknowledges: r.Acknowledged()}
	case !r.renewing.stored:
		r.renewing.stored = true
		if l := w.find(r.lease); l.Holder == r.holder {
			*l = Lease{Name: r.lease, Holder: r.holder, Renewed: w.now, Duration: lasts, Acknowledges: r.renewing.acknowledges}
		} else {
			r.gone = true
		}
	default:
		r.until, r.renewing = r.renewing.asked.Add(lasts), nil
	}
}

// list asks for a list, or has it come.
func (w *world) list(r *replica) {
	switch {
	case r.gone:
	case r.listing == nil:
		r.listing = append([]Lease{}, w.leases...)
	default:
		r.Observe(r.listing, w.now)
		r.listing = nil
	}
}

// leave gives the Lease back, when nothing is being bound any more.
func (w *world) leave(r *replica) {
	if w.open(r) && len(r.bindings) == 0 {
		r.gone = true
		*w.find(r.lease) = Lease{Name: r.lease, Renewed: w.now, Duration: time.Second}
	}
}

// begin begins a binding of a workload, if it may, and end ends one.
func (w *world) begin(r *replica, of int) {
	if w.open(r) && r.Owns(workload(of), w.now) {
		r.bindings = append(r.bindings, binding{of, r.Begin()})
	}
}

func (w *world) end(r *replica) {
	if len(r.bindings) > 0 {
		r.End(r.bindings[0].generation)
		r.bindings = r.bindings[1:]
	}
}

// settle lets time go by with everybody alive and nothing being bound.
func (w *world) settle() {
	for _, r := range w.replicas {
		for len(r.bindings) > 0 {
			w.end(r)
		}
	}
	for range 60 {
		w.now = w.now.Add(time.Second)
		for _, r := range w.replicas {
			for i := range most {
				w.acquire(r, fmt.Sprint("s-", i))
			}
			for range 3 {
				w.renew(r)
			}
			w.list(r)
			w.list(r)
		}
	}
}

// TestProtocol holds that no two replicas ever bind pods of one workload, whatever is late, dies or joins; and that
// when all is quiet each workload has one that does.
func TestProtocol(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{now: start}
		of := rapid.IntRange(0, workloads-1)
		some := func(t *rapid.T) *replica {
			if len(w.replicas) == 0 {
				t.Skip("there are none")
			}
			return rapid.SampledFrom(w.replicas).Draw(t, "replica")
		}
		// Mostly a step is taken at once, and sometimes it stops in the middle.
		steps := func(t *rapid.T, most int, step func()) {
			for range rapid.SampledFrom([]int{most, most, most, 1}).Draw(t, "steps") {
				step()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"start":   func(*rapid.T) { w.start() },
			"acquire": func(t *rapid.T) { w.acquire(some(t), fmt.Sprint("s-", rapid.IntRange(0, most-1).Draw(t, "lease"))) },
			"renew":   func(t *rapid.T) { r := some(t); steps(t, 3, func() { w.renew(r) }) },
			"list":    func(t *rapid.T) { r := some(t); steps(t, 2, func() { w.list(r) }) },
			"all": func(*rapid.T) {
				for _, r := range w.replicas {
					for range 3 {
						w.renew(r)
					}
					w.list(r)
					w.list(r)
				}
			},
			"leave": func(t *rapid.T) { w.leave(some(t)) },
			"dies":  func(t *rapid.T) { some(t).gone = true },
			"begin": func(t *rapid.T) { w.begin(some(t), of.Draw(t, "workload")) },
			"end":   func(t *rapid.T) { w.end(some(t)) },
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 6).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				for of := range workloads {
					if writing := w.writing(of); len(writing) > 1 {
						t.Fatalf("%v all bind pods of workload %d; the Leases are %+v", writing, of, w.leases)
					}
				}
			},
		})
		w.settle()
		if !slices.ContainsFunc(w.replicas, w.open) {
			return
		}
		for of := range workloads {
			if writing := w.writing(of); len(writing) != 1 {
				t.Fatalf("when all is quiet, workload %d is placed by %v", of, writing)
			}
		}
	})
}

// names are those of members, in any order.
func names(t *rapid.T, label string) []string {
	return rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}-[0-9]`), 1, 8, rapid.ID[string]).Draw(t, label)
}

// Every workload has exactly one owner whatever the members are, and whoever asks.
func TestEveryWorkloadHasOneOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, workload := names(t, "members"), rapid.String().Draw(t, "workload")
		owner := Owner(workload, members)
		if !slices.Contains(members, owner) {
			t.Fatalf("%q is owned by %q, who is none of %v", workload, owner, members)
		}
		asked := rapid.Permutation(members).Draw(t, "as others list them")
		if other := Owner(workload, asked); other != owner {
			t.Fatalf("%q is owned by %q to one and by %q to another", workload, owner, other)
		}
	})
	if owner := Owner("web", nil); owner != "" {
		t.Errorf("without members it is owned by %q", owner)
	}
}

// A member that goes hands on its own share and nothing else; who comes takes from others, and moves nothing between them.
func TestOnlyTheShareOfWhoGoesMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := names(t, "members")
		gone := rapid.SampledFrom(members).Draw(t, "gone")
		stay := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == gone })
		for i := range 50 {
			workload := fmt.Sprint("default/Deployment.apps/web-", i)
			before, after := Owner(workload, members), Owner(workload, stay)
			if before != gone && after != before {
				t.Fatalf("%q goes, and %s moves from %q to %q", gone, workload, before, after)
			}
		}
	})
}

// Shares are alike, for names as there are: that differ in their last digit.
func TestSharesAreAlike(t *testing.T) {
	const workloads = 20000
	for replicas := 2; replicas <= 8; replicas++ {
		var members []string
		for i := range replicas {
			members = append(members, fmt.Sprint("espalier-scheduler-", i))
		}
		share := make(map[string]int)
		for i := range workloads {
			share[Owner(fmt.Sprint("default/Deployment.apps/web-", i), members)]++
		}
		for _, m := range members {
			if exact := workloads / replicas; share[m] < exact*9/10 || share[m] > exact*11/10 {
				t.Errorf("of %d replicas %s owns %d of %d workloads, want %d to a tenth", replicas, m, share[m], workloads, exact)
			}
		}
	}
}

func TestVacant(t *testing.T) {
	all := []string{"s-0", "s-1", "s-2"}
	for name, tc := range map[string]struct {
		leases []Lease
		want   string
	}{
		"none is held":              {nil, "s-0"},
		"the first is held":         {[]Lease{{Name: "s-0", Holder: "a", Renewed: start}}, "s-1"},
		"one was given back":        {[]Lease{{Name: "s-0", Holder: "a", Renewed: start}, {Name: "s-1", Renewed: start}, {Name: "s-2", Holder: "c", Renewed: start}}, "s-1"},
		"all are held":              {[]Lease{{Name: "s-0", Holder: "a", Renewed: start.Add(2)}, {Name: "s-1", Holder: "b", Renewed: start}, {Name: "s-2", Holder: "c", Renewed: start.Add(1)}}, "s-1"},
		"others are of another use": {[]Lease{{Name: "kube-scheduler", Holder: "me", Renewed: start}}, "s-0"},
		"one is held already":       {[]Lease{{Name: "s-1", Holder: "me", Renewed: start}}, "s-1"},
	} {
		if got := Vacant(all, tc.leases, "me"); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
