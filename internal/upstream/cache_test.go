// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// TestCacheHasNoUnknownMethods holds the list of what a scheduler's cache can be asked to do:
// a new method of the next Kubernetes may alter nodes, and then has to be noted.
func TestCacheHasNoUnknownMethods(t *testing.T) {
	noted := []string{"AddNode", "AddPod", "AssumePod", "ForgetPod", "RemoveAssumedPod", "RemoveNode", "RemovePod", "UpdateNode", "UpdatePod", "UpdateSnapshot"}
	harmless := []string{
		"BindPod", "BuildHierarchySnapshotFromPod", "Dump", "GetNode", "GetPod", "GetRootKeyForGroup", "IsAssumedPod", "NodeCount", "PodCount",
		"AddCompositePodGroup", "AddPodGroup", "AddPodGroupMember", "CompositePodGroupStates", "CompositePodGroups", "PodGroupStates", "PodGroups",
		"RemoveCompositePodGroup", "RemovePodGroup", "RemovePodGroupMember", "UpdateCompositePodGroup", "UpdatePodGroup", "UpdatePodGroupMember",
	}
	for method := range reflect.TypeFor[internalcache.Cache]().Methods() {
		if name := method.Name; !slices.Contains(noted, name) && !slices.Contains(harmless, name) {
			t.Errorf("the scheduler's cache has a method %s: if it alters what the entry of a node says, note the node in cache.go; then name it here", name)
		}
	}
}

// shelf is a tracked cache and its snapshots, and for every node the generation that its reader saw last.
type shelf struct {
	*trackedCache
	logger   logr.Logger
	snapshot *internalcache.Snapshot
	position uint64
	seen     map[string]int64
}

func newShelf(t *testing.T, nodes int) *shelf {
	cache, _ := track(internalcache.New(t.Context(), nil, false, false))
	s := &shelf{trackedCache: cache.(*trackedCache), logger: logr.Discard(), snapshot: internalcache.NewEmptySnapshot(), seen: make(map[string]int64)}
	for i := range nodes {
		s.AddNode(s.logger, st.MakeNode().Name(fmt.Sprint("n", i)).Obj())
	}
	return s
}

// unsaid takes a snapshot, and returns the nodes in it that have changed without the journal's saying so.
func (s *shelf) unsaid(t placementtest.TB) []string {
	t.Helper()
	must(t, s.UpdateSnapshot(s.logger, s.snapshot))
	said, now, known := s.journal.Since(s.position)
	s.position = now
	infos, err := s.snapshot.NodeInfos().List()
	must(t, err)
	var unsaid []string
	for _, info := range infos {
		name := info.Node().Name
		if known && s.seen[name] != info.GetGeneration() && !slices.Contains(said, name) {
			unsaid = append(unsaid, name)
		}
		s.seen[name] = info.GetGeneration()
	}
	return unsaid
}

// TestJournalSaysAllThatChanges does to a cache whatever a scheduler does, in any order.
func TestJournalSaysAllThatChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, pods := newShelf(t, 4), make(map[string]*corev1.Pod)
		node := func() string { return rapid.SampledFrom([]string{"n0", "n1", "n2", "n3", "late"}).Draw(rt, "node") }
		some := func() *corev1.Pod {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "pod")
			if p := pods[name]; p != nil {
				return p
			}
			pods[name] = st.MakePod().Name(name).UID(name).Node(node()).Obj()
			return pods[name]
		}
		// What the cache refuses changes nothing, and must be no trouble.
		heedless := func(error) {}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				if unsaid := s.unsaid(rt); len(unsaid) > 0 {
					rt.Fatalf("nodes %v have changed, and the journal does not say so", unsaid)
				}
			},
			"assume": func(*rapid.T) { heedless(s.AssumePod(s.logger, some())) },
			"forget": func(*rapid.T) { heedless(s.ForgetPod(s.logger, some())) },
			"drop":   func(*rapid.T) { heedless(s.RemoveAssumedPod(s.logger, some())) },
			"add":    func(*rapid.T) { heedless(s.AddPod(s.logger, some())) },
			"add elsewhere": func(*rapid.T) {
				// An assumed pod that somebody else has bound to another node.
				p := some().DeepCopy()
				if assumed, err := s.IsAssumedPod(p); err != nil || !assumed {
					return
				}
				p.Spec.NodeName = node()
				pods[p.Name] = p
				heedless(s.AddPod(s.logger, p))
			},
			"update": func(*rapid.T) {
				p := some()
				heedless(s.UpdatePod(s.logger, p, p.DeepCopy()))
			},
			"remove": func(*rapid.T) {
				p := some().DeepCopy()
				if rapid.Bool().Draw(rt, "from a delete that was missed") {
					p.Spec.NodeName = ""
				}
				delete(pods, p.Name)
				heedless(s.RemovePod(s.logger, p))
			},
			"node": func(rt *rapid.T) {
				n := st.MakeNode().Name(node()).Label("x", rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "x")).Obj()
				if info, err := s.GetNode(n.Name); err == nil && info.Node() != nil { // an update comes after the node
					s.UpdateNode(s.logger, n, n)
				}
			},
			"new node":  func(*rapid.T) { s.AddNode(s.logger, st.MakeNode().Name(node()).Obj()) },
			"node gone": func(*rapid.T) { heedless(s.RemoveNode(s.logger, st.MakeNode().Name(node()).Obj())) },
		})
	})
}

// TestJournalAmidChanges takes snapshots while others change the cache: a change must not
// be noted later than the snapshot that shows it, nor earlier than the one before.
func TestJournalAmidChanges(t *testing.T) {
	const writers, rounds = 4, 500
	s := newShelf(t, writers)
	s.unsaid(t)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for round := range rounds {
				p := st.MakePod().Name(fmt.Sprint(i, "-", round)).UID(fmt.Sprint(i, "-", round)).Node(fmt.Sprint("n", i)).Obj()
				if err := s.AssumePod(s.logger, p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range rounds {
		if unsaid := s.unsaid(t); len(unsaid) > 0 {
			t.Errorf("nodes %v have changed, and the journal does not say so", unsaid)
			break
		}
	}
	wg.Wait()
	if unsaid := s.unsaid(t); len(unsaid) > 0 {
		t.Errorf("nodes %v have changed in the end, and the journal does not say so", unsaid)
	}
}

// TestJournalOfAStandby notes more nodes than are kept, with nobody taking snapshots.
func TestJournalOfAStandby(t *testing.T) {
	s := newShelf(t, 1)
	s.unsaid(t)
	for i := range maxJournal + 10 {
		s.note(fmt.Sprint("gone", i))
	}
	if n := s.noted.Len(); n > maxJournal {
		t.Errorf("%d nodes are noted, more than %d", n, maxJournal)
	}
	must(t, s.UpdateSnapshot(s.logger, s.snapshot))
	if _, _, known := s.journal.Since(s.position); known {
		t.Error("the journal claims to know what has changed, which it has forgotten")
	}
}

func TestJournal(t *testing.T) {
	j := newJournal()
	if _, _, known := j.Since(0); known {
		t.Error("who has seen nothing is told what has changed since")
	}
	_, start, _ := j.Since(0)
	j.add([]string{"a"})
	j.add([]string{"b", "c"})
	nodes, middle, known := j.Since(start)
	if want := []string{"a", "b", "c"}; !known || !slices.Equal(nodes, want) {
		t.Errorf("changed since the start: %v (known: %t), want %v", nodes, known, want)
	}
	if nodes, _, known := j.Since(middle); !known || len(nodes) > 0 {
		t.Errorf("changed since the last entry: %v (known: %t), want none", nodes, known)
	}
	j.lose()
	if _, _, known := j.Since(middle); known {
		t.Error("what was lost is known")
	}
	_, before, _ := j.Since(0)
	for range 3 {
		j.add(make([]string, maxJournal))
	}
	if _, now, known := j.Since(before); known || now != before+3*maxJournal {
		t.Errorf("position %d after %d entries from %d (known: %t), want %d, unknown", now, 3*maxJournal, before, known, before+3*maxJournal)
	}
	if len(j.entries) > maxJournal {
		t.Errorf("%d entries are kept, more than %d", len(j.entries), maxJournal)
	}
}

// TestJournalAfterAFailedSnapshot breaks a snapshot as the scheduler's cache tells it: nodes
// that have changed may be missing in it, and are not noted anew.
func TestJournalAfterAFailedSnapshot(t *testing.T) {
	s := newShelf(t, 1)
	s.unsaid(t)
	late := st.MakeNode().Name("late").Obj()
	must(t, s.AddPod(s.logger, st.MakePod().Name("a").UID("a").Node("late").Obj()))
	s.UpdateNode(s.logger, late, late)
	s.unsaid(t)
	s.AddNode(s.logger, late)
	if err := s.UpdateSnapshot(s.logger, s.snapshot); err == nil {
		t.Fatal("the snapshot has not failed, so that nothing is tested here")
	}
	if _, _, known := s.journal.Since(s.position); known {
		t.Error("the journal claims to know what has changed, although the snapshot failed")
	}
}

func TestCheckTracked(t *testing.T) {
	bare := internalcache.New(t.Context(), nil, false, false)
	tracked, _ := track(bare)
	if err := checkTracked(&Scheduler{Cache: tracked}, bare); err != nil {
		t.Errorf("one whose cache is tracked is refused: %v", err)
	}
	err := checkTracked(&Scheduler{Cache: bare}, bare)
	if err == nil || !strings.Contains(err.Error(), "Scheduler.Cache") {
		t.Errorf("one whose cache is not tracked: %v", err)
	}
}
