// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// All pods of a StatefulSet, and of a Deployment that makes none before one is gone, are on a node that is cordoned. One after the other goes, and is ready
// elsewhere before the next one does.
func TestDrainEvictsFirst(t *testing.T) {
	s := begin(t, moves.core(), byZone)
	node := s.nodes(1, 20, zone("zone-a"))[0]
	s.statefulSet("db", 3, s.template("db", ""))
	s.deploy("once", 3, "")
	s.patch("once", `{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`)
	var stops []func()
	for _, app := range []string{"db", "once"} {
		s.settled(app, 3)
		s.keeps(app, 2)
		s.asks(app, placementv1alpha1.Moves{Drained: placementv1alpha1.DrainedAll})
		stops = append(stops, s.neverOutside(app, 2, 3))
	}
	s.available("once", "the Deployment to be at rest")
	s.nodes(2, 20, zone("zone-b"))
	s.cordon(true, node)
	s.movedExactly(6)
	for i, app := range []string{"db", "once"} {
		if n := s.observe("app="+app, 3, isReady).OnNodes()[node]; n != 0 {
			t.Errorf("%d pods of %s are on %s", n, app, node)
		}
		stops[i]()
	}
}

// One of ten nodes begins to fail what runs there. The pods of a StatefulSet go to others, and no pods of other nodes do.
func TestRestartElsewhereOfAStatefulSet(t *testing.T) {
	s := begin(t, faults, byZone)
	s.needsFailures()
	s.label(restartLabel)
	nodes := s.nodes(10, 20, zone("zone-a"))
	s.statefulSet("db", 30, s.template("db", ""))
	s.eachHas(s.settled("db", 30), 3, nodes...)
	s.devcluster("fail", "--as=crashloop", "--running", nodes[0])
	s.Cleanup(func() { s.healLater(nodes[0]) })
	s.moved(3, placementv1alpha1.MoveDone)
	o := s.observe("app=db", 30, isReady)
	if n := o.OnNodes()[nodes[0]]; n != 0 {
		t.Errorf("%d pods are on %s", n, nodes[0])
	}
	s.still(3)
}
