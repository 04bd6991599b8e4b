// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

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

// A member that goes hands on its own share and nothing else; who comes takes from others, and moves nothing
// between them.
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
		t.Run(name, func(t *testing.T) {
			if got := Vacant(all, tc.leases, "me"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
