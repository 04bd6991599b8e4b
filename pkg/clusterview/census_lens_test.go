// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/level"
)

// Values that are remembered are those of the levels and of the node as it is.
func TestCensusRemembersValuesOfTheRightLevels(t *testing.T) {
	info := framework.NewNodeInfo()
	label := func(zone string) {
		info.SetNode(st.MakeNode().Name("n1").Label("zone", zone).Label("rack", "r").Obj())
	}
	c := NewCensus(NewIdentifier(nil))
	check := func(levels, want string) {
		t.Helper()
		parsed, err := level.Parse(levels)
		if err != nil {
			t.Fatal(err)
		}
		c.Refresh(Snapshot{Nodes: []fwk.NodeInfo{info}})
		var got []placement.Value
		c.Each(0, Identity{}, parsed, func(n placement.Node) { got = n.Values })
		if len(got) != len(parsed) || !slices.ContainsFunc(got, func(v placement.Value) bool { return v.Text == want }) {
			t.Errorf("%s: got %v, want %s among them", levels, got, want)
		}
	}
	label("a")
	check("spread=zone", "a")
	check("spread=rack", "r")
	check("spread=zone", "a")
	check("pack=zone", "a")
	label("b")
	check("spread=zone", "b")
	check("spread=zone,spread=node.name", "n1")
	check("spread=zone", "b")
}
