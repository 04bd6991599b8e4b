// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// world is a cluster as its API server has it, beside the rig that schedules for it.
// It keeps books of its own: what the plugin is measured by is never read from it.
type world struct {
	*rig
	t     *rapid.T
	nodes map[string]*worldNode
	pods  map[string]*worldPod // by name
	born  int
	// levels are those of each workload's pods, but for a few.
	levels []string
	// countAll is what the plugin was told to count.
	countAll bool
	// ledger has the faults; kept: pods are told of them.
	ledger *ledger
	kept   bool
}

type worldNode struct {
	node *corev1.Node
	here bool
	room int
}

type worldPod struct {
	pod                *corev1.Pod // with the node in it
	workload, revision string
	// cached: it is in the scheduler's cache; assumed: no more than assumed there.
	cached, assumed bool
	// binding: its binding may yet fail, and state then takes it back.
	binding bool
	state   *framework.CycleState
}

var placements = []string{"", "spread=zone", "spread=zone,spread=rack", "pack=rack", "spread=zone;nodesWithoutKey=Exclude,pack=rack", "spread=zone;nodesWithoutKey=LastResort,spread=rack",
	"spread=zone;weight.a=2;weight.*=3,spread=rack", "spread=node.name"}

func drawWorld(t *rapid.T) *world {
	a := args()
	w := &world{t: t, nodes: make(map[string]*worldNode), pods: make(map[string]*worldPod), ledger: newLedger(placement.Faults{})}
	if rapid.Bool().Draw(t, "count all") {
		a.CountRevisions, w.countAll = config.CountAll, true
	}
	w.rig = newRig(t.Context(), t, a)
	w.pl.prefetch = feasibility.Prefetch{ParallelFrom: 1, After: rapid.IntRange(0, 2).Draw(t, "timeout")}
	w.keepFaults(t)
	for range 2 {
		w.levels = append(w.levels, w.drawLevels())
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "nodes") {
		name := fmt.Sprint("n", i)
		w.nodes[name] = &worldNode{}
		w.appear(name)
	}
	return w
}

func (w *world) drawLevels() string { return rapid.SampledFrom(placements).Draw(w.t, "levels") }

func (w *world) drawNode(name string) *st.NodeWrapper {
	n := st.MakeNode().Name(name)
	if zone := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(w.t, "zone"); zone != "" {
		n.Label("zone", zone)
	}
	if rack := rapid.SampledFrom([]string{"", "1", "2"}).Draw(w.t, "rack"); rack != "" {
		n.Label("rack", rack)
	}
	if rapid.IntRange(0, 5).Draw(w.t, "unready") == 0 {
		n.Condition(corev1.NodeReady, corev1.ConditionFalse, "", "")
	}
	if rapid.IntRange(0, 4).Draw(w.t, "soft") == 0 {
		n.Taints([]corev1.Taint{{Key: "leaving", Effect: corev1.TaintEffectPreferNoSchedule}})
	}
	if end := rapid.SampledFrom([]string{"", "", "", "2026-01-31T12:00:00Z", "2026-01-31T12:59:59Z", "2026-01-31T13:00:00Z", "odd"}).Draw(w.t, "ends"); end != "" {
		n.Annotation(clusterview.ValidUntilAnnotation, end)
	}
	return n.Unschedulable(rapid.IntRange(0, 5).Draw(w.t, "cordoned") == 0)
}

func (w *world) appear(name string) {
	n := w.nodes[name]
	n.node, n.here, n.room = w.drawNode(name).Obj(), true, rapid.IntRange(0, 6).Draw(w.t, "room")
	w.cache.AddNode(w.logger, n.node)
}

// some draws one of the pods of which is is true, by name, nil if there is none.
func (w *world) some(is func(*worldPod) bool) *worldPod {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		if is(w.pods[name]) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return w.pods[rapid.SampledFrom(names).Draw(w.t, "pod")]
}

func (w *world) someNode() (string, *worldNode) {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(w.nodes))).Draw(w.t, "node")
	return name, w.nodes[name]
}

// seen is the cluster as the oracle is to judge it for a pod.
func (w *world) seen(p *worldPod) []placement.Node {
	levels := mustLevels(w.rig, p.pod).List
	var seen []placement.Node
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		n := w.nodes[name]
		if !n.here {
			continue
		}
		node := placement.Node{Name: name, Unready: len(n.node.Status.Conditions) > 0, Soft: len(n.node.Spec.Taints) > 0, Ends: endsIn(n.node)}
		for _, l := range levels {
			text, ok := n.node.Labels[l.Property.Label]
			if l.Property.Label == "" {
				text, ok = name, true
			}
			node.Values = append(node.Values, placement.Value{Text: text, Missing: !ok})
		}
		for _, q := range w.pods {
			if q.pod.Spec.NodeName != name || !q.cached || q.pod.DeletionTimestamp != nil {
				continue
			}
			node.Tally.All++
			if q.workload == p.workload {
				node.Tally.Workload++
				if w.countAll || q.revision == p.revision {
					node.Tally.Revision++
				}
			}
		}
		if w.kept {
			node.Record = w.ledger.records[at(w.pl.identifier.Identify(p.pod), name)]
		}
		seen = append(seen, node)
	}
	return seen
}

// endsIn is the hour in which a node ends. One that cannot be read is the first that there is.
func endsIn(node *corev1.Node) int32 {
	text, ok := node.Annotations[clusterview.ValidUntilAnnotation]
	end, err := time.Parse(time.RFC3339, text)
	switch {
	case !ok:
		return 0
	case err != nil:
		return 1
	}
	return int32(end.Unix() / 3600)
}

// fits are the filters: cordon, room, and what the plugin Preferences keeps out.
func (w *world) fits(p *worldPod, name string) bool {
	n := w.nodes[name]
	on := 0
	for _, q := range w.pods {
		if q.cached && q.pod.Spec.NodeName == name {
			on++
		}
	}
	return !n.node.Spec.Unschedulable && on < n.room && !clusterview.LeftOut(n.node, mustLevels(w.rig, p.pod).List)
}

// confirm is the watch that brings a pod with its node: while it is being bound, or after.
func (w *world) confirm(*rapid.T) {
	if p := w.some(func(p *worldPod) bool { return p.cached && p.assumed }); p != nil {
		w.must(w.cache.AddPod(w.logger, p.pod))
		p.assumed = false
		p.binding = rapid.Bool().Draw(w.t, "its answer is still out")
	}
}

func (w *world) bindingFails(*rapid.T) {
	if p := w.some(func(p *worldPod) bool { return p.binding }); p != nil {
		w.unproven(p.pod, -1)
		if rapid.IntRange(0, 3).Draw(w.t, "a pod comes in between") == 0 {
			w.schedule(w.t)
		}
		err := w.cache.ForgetPod(w.logger, p.pod)
		p.binding = false
		if p.assumed {
			w.must(err)
			p.cached = false
		}
	}
}

// deletePod is the watch that tells of a pod's end, be it bound or about to be.
func (w *world) deletePod(*rapid.T) {
	if p := w.some(func(p *worldPod) bool { return p.cached }); p != nil {
		if p.assumed {
			w.must(w.cache.RemoveAssumedPod(w.logger, p.pod))
		} else {
			w.must(w.cache.RemovePod(w.logger, p.pod))
		}
		p.cached, p.assumed = false, false
	}
}

func (w *world) terminatePod(*rapid.T) {
	if p := w.some(func(p *worldPod) bool { return p.cached && !p.assumed && p.pod.DeletionTimestamp == nil }); p != nil {
		ending := p.pod.DeepCopy()
		ending.DeletionTimestamp = new(metav1.Now())
		w.must(w.cache.UpdatePod(w.logger, p.pod, ending))
		p.pod = ending
	}
}

func (w *world) changeNode(*rapid.T) {
	if name, n := w.someNode(); n.here {
		next := w.drawNode(name).Obj()
		w.cache.UpdateNode(w.logger, n.node, next)
		n.node = next
	}
}

func (w *world) nodeComesOrGoes(*rapid.T) {
	name, n := w.someNode()
	if !n.here {
		w.appear(name)
		return
	}
	w.must(w.cache.RemoveNode(w.logger, n.node))
	n.here = false
}

// What befalls a world in which faults are kept.

func (w *world) newState() *framework.CycleState {
	if !w.kept {
		return framework.NewCycleState()
	}
	return w.ledger.under()
}

func (w *world) rule() placement.Faults {
	if !w.kept {
		return placement.Faults{}
	}
	return w.ledger.rule
}

// keepFaults changes the rule, or whether the pods to come are told of faults at all.
func (w *world) keepFaults(*rapid.T) {
	w.kept = rapid.IntRange(0, 3).Draw(w.t, "kept") > 0
	w.ledger.rule = placement.Faults{Threshold: rapid.IntRange(1, 3).Draw(w.t, "threshold"), HalfOpen: rapid.Bool().Draw(w.t, "half-open")}
}

// fare changes how a revision has fared on a node, which need not be there.
func (w *world) fare(*rapid.T) {
	name, _ := w.someNode()
	w.ledger.write(where{
		workload: w.pl.identifier.Identify(w.anyWebPod()).Workload, revision: rapid.SampledFrom([]string{"1", "2"}).Draw(w.t, "revision"), node: name,
	}, placement.Record{
		Failures: rapid.IntRange(0, 3).Draw(w.t, "failures"), Unforgiven: rapid.IntRange(0, 3).Draw(w.t, "unforgiven"),
		Proven: rapid.IntRange(0, 4).Draw(w.t, "proven") == 0, Unproven: rapid.Int64Range(0, 2).Draw(w.t, "unproven"),
	})
}

func (w *world) anyWebPod() *corev1.Pod {
	workload := rapid.SampledFrom([]string{"w0", "w1"}).Draw(w.t, "workload")
	return webPod("p", "").Label(clusterview.WorkloadLabel, workload).Obj()
}

func (w *world) forgetParticulars(*rapid.T) { w.ledger.forget() }

// unproven is what the ledger hears of a pod that is placed, or could not be bound.
func (w *world) unproven(pod *corev1.Pod, by int64) {
	on := at(w.pl.identifier.Identify(pod), pod.Spec.NodeName)
	if r := w.ledger.records[on]; r != (placement.Record{}) && r.Unproven+by >= 0 {
		r.Unproven += by
		w.ledger.write(on, r)
	}
}
