// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preassignedfirst_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/plugins/preassignedfirst"
)

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	m.Run()
}

var (
	epoch     = time.Unix(1_000_000, 0)
	daemonSet = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
)

// queued is a pod that came some seconds after the epoch.
func queued(name string, priority int32, seconds int, preassigned string) *framework.QueuedPodInfo {
	p := st.MakePod().Namespace("ns").Name(name).Priority(priority)
	switch preassigned {
	case "daemon":
		p.OwnerReference("ds", daemonSet)
	case "pinned":
		p.NodeAffinityIn(metav1.ObjectNameField, []string{"n1"}, st.NodeSelectorTypeMatchFields)
	}
	return &framework.QueuedPodInfo{
		PodInfo: &framework.PodInfo{Pod: p.Obj()}, QueueingParams: framework.QueueingParams{Timestamp: epoch.Add(time.Duration(seconds) * time.Second)},
	}
}

func sorter(t placementtest.TB) fwk.QueueSortPlugin {
	pl, err := preassignedfirst.New(nil, nil, nil) //nolint:staticcheck // it asks for none of the three
	placementtest.Must(t, err)
	return pl.(fwk.QueueSortPlugin)
}

func TestOrder(t *testing.T) {
	pl := sorter(t)
	if got := pl.Name(); got != "PreassignedFirst" {
		t.Errorf("its name is %q", got)
	}
	// In the order in which they are to be taken.
	entities := []fwk.QueuedEntityInfo{
		queued("urgent-pinned", 10, 9, "pinned"),
		queued("urgent", 10, 8, ""),
		queued("daemon", 0, 6, "daemon"),
		queued("pinned", 0, 7, "pinned"),
		queued("first-of-batch", 0, 0, ""),
		queued("second-of-batch", 0, 1, ""),
		queued("pinned-when-the-batch-was-old", 0, 12, "pinned"),
		queued("after-the-batch", 0, 3, ""),
		queued("last-daemon", -1, 0, "daemon"),
	}
	for i, a := range entities {
		for j, b := range entities {
			if got := pl.Less(a, b); got != (i < j) {
				t.Errorf("%s before %s: %t", name(a), name(b), got)
			}
		}
	}
}

func name(e fwk.QueuedEntityInfo) string { return e.(*framework.QueuedPodInfo).PodInfo.Pod.Name }

var kind = rapid.SampledFrom([]string{"", "daemon", "pinned"})

// Among pods of one kind, and across priorities, the order is that of the in-tree plugin.
func TestKeepsTheOrderOfPrioritySort(t *testing.T) {
	pl, inTree := sorter(t), &queuesort.PrioritySort{}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (*framework.QueuedPodInfo, string) {
			k := kind.Draw(t, label)
			return queued(label, rapid.Int32Range(-1, 1).Draw(t, label), rapid.IntRange(0, 3).Draw(t, label), k), k
		}
		a, kindOfA := draw("a")
		b, kindOfB := draw("b")
		alike := (kindOfA == "") == (kindOfB == "")
		if (alike || a.GetPriority() != b.GetPriority()) && pl.Less(a, b) != inTree.Less(a, b) {
			t.Errorf("%s before %s: %t, and PrioritySort says %t", kindOfA, kindOfB, pl.Less(a, b), inTree.Less(a, b))
		}
	})
}

// The queue is a heap: an order that contradicts itself would lose pods in it.
func TestIsAnOrder(t *testing.T) {
	pl := sorter(t)
	rapid.Check(t, func(t *rapid.T) {
		var es []fwk.QueuedEntityInfo
		for range 6 {
			es = append(es, queued("p", rapid.Int32Range(0, 1).Draw(t, "priority"), rapid.IntRange(0, 2).Draw(t, "seconds"), kind.Draw(t, "kind")))
		}
		slices.SortFunc(es, func(a, b fwk.QueuedEntityInfo) int {
			return cmp.Compare(boolean(pl.Less(b, a)), boolean(pl.Less(a, b)))
		})
		for i := range es {
			for j := range i {
				if pl.Less(es[i], es[j]) {
					t.Errorf("sorted, entity %d is before entity %d", i, j)
				}
			}
		}
	})
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A group of pods is no pod: it keeps the turn that its priority and age give it.
func TestAGroupIsNotPreassigned(t *testing.T) {
	pl := sorter(t)
	group := &framework.QueuedPodGroupInfo{PodGroupInfo: &framework.PodGroupInfo{}}
	group.Timestamp = epoch
	late, early := queued("late", 0, 1, ""), queued("early", 0, -1, "")
	if !pl.Less(group, late) || pl.Less(group, early) || !pl.Less(queued("pinned", 0, 1, "pinned"), group) {
		t.Error("a group is not ordered by its age among pods that are not preassigned")
	}
}

// Whoever keeps pinned pods coming holds up nobody for longer than the head start.
func TestNobodyStarves(t *testing.T) {
	pl := sorter(t)
	waits := queued("waits", 0, 0, "")
	for seconds, first := range map[int]bool{0: true, 9: true, 10: false, 11: false, 3600: false} {
		if got := pl.Less(queued("pinned", 0, seconds, "pinned"), waits); got != first {
			t.Errorf("a pinned pod that comes after %d s is first: %t", seconds, got)
		}
	}
}
