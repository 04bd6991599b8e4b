// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"fmt"
	"slices"
	"testing"

	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/espalier-scheduler/espalier/internal/plugintest"
)

func TestIndexFollowsNodesThatGoAndReturn(t *testing.T) {
	v := newView("n1", "n2", "n3")
	v.put("n1", "web-2", st.MakePod())
	v.refresh()
	before := v.index.Nodes().Structure()
	v.leave("n1")
	v.refresh()
	if v.has("n1") || !v.has("n2") || !v.has("n3") || v.index.Counts(web.Workload) || v.index.Nodes().Structure() == before {
		t.Fatalf("n1 left: has n1 %t, its pod counts %t", v.has("n1"), v.index.Counts(web.Workload))
	}
	before = v.index.Nodes().Structure()
	v.refresh()
	if v.index.Nodes().Structure() != before {
		t.Error("the departure is told again")
	}
	v.join(st.MakeNode().Name("n1").Label("zone", "b").Obj())
	v.refresh()
	v.index.Watch(plugintest.Levels(t, "spread=zone"))
	id, known := v.index.Nodes().Find("n1")
	if got := v.index.Values(plugintest.Levels(t, "spread=zone"))(id, 0); !known || got.Text != "b" {
		t.Errorf("n1 is back: %t, in zone %+v", known, got)
	}
	v.info("n1").SetNode(st.MakeNode().Name("n1").Label("zone", "c").Obj())
	before = v.index.Nodes().Structure()
	v.refresh()
	if v.index.Nodes().Structure() == before {
		t.Error("n1 has another zone, and the structure is as it was")
	}
}

func TestIndexHeedsLabelsThatLevelsName(t *testing.T) {
	v := newView("n1")
	v.refresh()
	v.index.Watch(plugintest.Levels(t, "spread=zone"))
	v.index.Watch(plugintest.Levels(t, "spread=zone,spread=rack"))
	changes := func(node *st.NodeWrapper) bool {
		before := v.index.Nodes().Structure()
		v.info("n1").SetNode(node.Obj())
		v.refresh()
		return v.index.Nodes().Structure() != before
	}
	if changes(st.MakeNode().Name("n1").Label("seen-at", "noon")) {
		t.Error("a label that no level names changes the structure")
	}
	if !changes(st.MakeNode().Name("n1").Label("zone", "")) || !changes(st.MakeNode().Name("n1").Label("zone", "a")) || !changes(st.MakeNode().Name("n1")) {
		t.Error("a node is in another zone, and the structure is as it was")
	}
	v.index.Unwatch(plugintest.Levels(t, "spread=zone,spread=rack"))
	if !changes(st.MakeNode().Name("n1").Label("zone", "b")) || changes(st.MakeNode().Name("n1").Label("zone", "b").Label("rack", "r")) {
		t.Error("of two lists of levels one is watched no more, and the labels that matter are not those of the other")
	}
	// However many labels there have been, others may be written by the minute.
	for i := range 2000 {
		levels := plugintest.Levels(t, fmt.Sprint("spread=label-", i))
		v.index.Watch(levels)
		v.index.Unwatch(levels)
	}
	v.index.Unwatch(plugintest.Levels(t, "spread=zone"))
	if changes(st.MakeNode().Name("n1").Label("seen-at", "one")) {
		t.Error("a label that no level names changes the structure")
	}
}

// One leaves and another comes between two snapshots: as many as before.
func TestIndexSeesANodeReplaced(t *testing.T) {
	v := newView("n1", "n2")
	watcher := v.watch()
	v.leave("n2")
	v.join(st.MakeNode().Name("n3").Obj())
	if changed := watcher.changed(v); !slices.Equal(changed, []string{"n3"}) || v.has("n2") || !v.has("n3") {
		t.Errorf("changed %q, has n2 %t, has n3 %t", changed, v.has("n2"), v.has("n3"))
	}
}
