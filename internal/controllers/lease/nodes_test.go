// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

func partition(name string, change ...func(*placementv1alpha1.PartitionSpec)) *placementv1alpha1.Partition {
	p := &placementv1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.NodeSelector.MatchLabels = map[string]string{"pool": name}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// allocation is one of partition p, which claims the pods of an app in the namespaces of a team.
func allocation(app, team string, traits map[string]string) *placementv1alpha1.Allocation {
	a := &placementv1alpha1.Allocation{ObjectMeta: metav1.ObjectMeta{Name: app}}
	a.Spec.Partition, a.Spec.Traits = "p", traits
	a.Spec.Assignments = []placementv1alpha1.Assignment{{
		NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
	}}
	return a
}

// b is a node that lives for ever, of a pool and with a disk.
func b(pool, disk string) *corev1.Node {
	n := node("b", 0)
	n.Labels["pool"], n.Labels["disk"] = pool, disk
	return n
}

// A pod of an allocation goes where that allows it, and one of none everywhere, as the scheduler places them.
func TestNodesOfAllocations(t *testing.T) {
	of := allocation("web", "web", map[string]string{"disk": "ssd"})
	for name, tc := range map[string]struct {
		others []client.Object
		off    bool
		moves  bool
	}{
		"a node of its partition with its traits": {[]client.Object{b("p", "ssd"), partition("p"), of}, false, true},
		"one of another partition":                {[]client.Object{b("q", "ssd"), partition("p"), partition("q"), of}, false, false},
		"one of no partition":                     {[]client.Object{b("", "ssd"), partition("p"), of}, false, false},
		"one without its traits":                  {[]client.Object{b("p", "hdd"), partition("p"), of}, false, false},
		"one of its partition, after one of another": {[]client.Object{b("q", "ssd"), func() client.Object {
			n := b("p", "ssd")
			n.Name = "c"
			return n
		}(), partition("p"), partition("q"), of}, false, true},
		"an allocation without a partition": {[]client.Object{b("p", "ssd"), of}, false, false},
		"a partition not of its namespace": {[]client.Object{b("p", "ssd"), partition("p", func(s *placementv1alpha1.PartitionSpec) {
			s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "db"}}
		}), of}, false, false},
		"a partition with shorter leases": {[]client.Object{b("p", "ssd"), partition("p", func(s *placementv1alpha1.PartitionSpec) {
			s.MaxLeaseSeconds = new(int64(49))
		}), of}, false, false},
		"an allocation of other pods":          {[]client.Object{b("p", "ssd"), partition("p"), allocation("db", "web", nil)}, false, true},
		"an allocation of other namespaces":    {[]client.Object{b("p", "ssd"), partition("p"), allocation("web", "db", nil)}, false, true},
		"a scheduler that knows none of these": {[]client.Object{b("q", "hdd"), partition("p"), of}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod(), tc.others...)
			c.Allocations = !tc.off
			_, asking, moves := c.lookAt(975)
			if !asking || (len(moves) == 1) != tc.moves {
				t.Errorf("it asks: %t, and there are %d Moves", asking, len(moves))
			}
			said := c.said()
			if tc.moves && len(said) > 0 || !tc.moves && (len(said) != 1 || !strings.Contains(said[0], "LeaseNotRenewed") || !strings.Contains(said[0], "no other node takes it")) {
				t.Errorf("it is told %q", said)
			}
		})
	}
}

// Where the kinds are not installed, or not yet, pods are of no allocation. Where they cannot be read nothing is known, and nothing is said.
func TestAllocationsThatAreNotThere(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		moves int
	}{
		"not installed": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: placementv1alpha1.SchemeGroupVersion.Group, Kind: "Partition"}}, 1},
		"not readable":  {errors.New("it is down"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pod(), b("p", "ssd"))
			c.Allocations = true
			c.Client = interceptor.NewClient(c.api.(client.WithWatch), interceptor.Funcs{
				List: func(ctx context.Context, to client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
					if kind := into.GetObjectKind().GroupVersionKind().Kind; kind == "PartitionList" || kind == "AllocationList" {
						return tc.err
					}
					return to.List(ctx, into, options...)
				},
			})
			c.clock.SetTime(at(975))
			err := c.look(t.Context())
			if failed := tc.moves == 0; failed != (err != nil) || failed && !strings.Contains(err.Error(), "listing objects of kind Partition: it is down") {
				t.Errorf("it fails: %v", err)
			}
			var moves placementv1alpha1.MoveList
			if err := c.api.List(t.Context(), &moves); err != nil {
				t.Fatal(err)
			}
			if said := c.said(); len(moves.Items) != tc.moves || len(said) > 0 {
				t.Errorf("there are %d Moves, and it is told %q", len(moves.Items), said)
			}
		})
	}
}
