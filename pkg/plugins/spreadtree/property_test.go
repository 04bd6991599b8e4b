// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package spreadtree

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/apis/config"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/feasibility"
	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/drawing"
	"github.com/espalier-scheduler/espalier/pkg/placement/oracle"
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
	pod      *corev1.Pod // with the node in it
	workload string
	revision string
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

// schedule decides a new pod. The nodes that score best must be those that the
// oracle calls best; any of them is taken.
func (w *world) schedule(*rapid.T) {
	w.born++
	i := rapid.IntRange(0, 1).Draw(w.t, "workload")
	levels := w.levels[i]
	if rapid.IntRange(0, 9).Draw(w.t, "levels of its own") == 0 {
		levels = w.drawLevels()
	}
	p := &worldPod{
		workload: fmt.Sprint("w", i), revision: rapid.SampledFrom([]string{"1", "2"}).Draw(w.t, "revision"),
		cached: true, assumed: true, binding: true, state: w.newState(),
	}
	p.pod = webPod(fmt.Sprint("p", w.born), levels).
		Label(clusterview.WorkloadLabel, p.workload).Label("pod-template-hash", p.revision).Obj()
	seen := w.seen(p)
	var fit []string
	hinted := rapid.Bool().Draw(w.t, "by a hint")
	for _, n := range seen {
		// Now and then there is a reason of this one pod, of which none is remembered.
		if w.fits(p, n.Name) && (hinted || rapid.IntRange(0, 7).Draw(w.t, "pod refused") > 0) {
			fit = append(fit, n.Name)
		}
	}
	var node string
	switch {
	case hinted:
		node = w.propose(p, seen, fit)
	case len(fit) > 1:
		node = w.decide(p, seen, fit)
	case len(fit) == 1: // of one node, the scheduler asks for no scores
		node = fit[0]
	}
	if node == "" {
		return
	}
	p.pod = w.assume(p.pod, node)
	w.unproven(p.pod, +1)
	w.pods[p.pod.Name] = p
}

// decide holds the scores of a pod against the oracle, and returns one of the best nodes.
func (w *world) decide(p *worldPod, seen []placement.Node, fit []string) string {
	fits := func(name string) bool { return slices.Contains(fit, name) }
	want := oracle.BestClass(mustLevels(w.rig, p.pod).List, w.rule(), seen, clusterview.Request(p.pod), fits)
	var best []string
	scores := w.rank(p.pod, p.state, fit...)
	for _, name := range sortedKeys(scores) {
		if scores[name] == fwk.MaxScore {
			best = append(best, name)
		}
	}
	if d := gocmp.Diff(want, best); d != "" {
		w.t.Fatalf("best nodes for %s with %v, oracle -, plugin +:\n%s\n%s", p.pod.Name, p.pod.Annotations, d, drawing.Tree(w.shown(p.pod)))
	}
	if err := w.shown(p.pod).Validate(); err != nil {
		w.t.Fatal(err)
	}
	return rapid.SampledFrom(best).Draw(w.t, "chosen")
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

// TestPropertyTheBestAreTheOracles goes through random lives of a cluster.
func TestPropertyTheBestAreTheOracles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"schedule": w.schedule, "schedule 2": w.schedule, "schedule 3": w.schedule, "schedule 4": w.schedule,
			"confirm": w.confirm, "binding fails": w.bindingFails, "delete pod": w.deletePod, "terminate pod": w.terminatePod,
			"change node": w.changeNode, "node comes or goes": w.nodeComesOrGoes,
			"fare": w.fare, "fare 2": w.fare, "faults are kept or not": w.keepFaults, "particulars are forgotten": w.forgetParticulars,
		})
	})
}

// TestPropertyBatchesEndEven places a batch, some of it after bindings that failed,
// and holds the end to what spreading promises.
func TestPropertyBatchesEndEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := rapid.SampledFrom([]string{"", "spread=zone", "spread=zone,spread=rack", "spread=zone;weight.a=2;weight.b=3", "pack=zone,spread=rack"}).Draw(t, "levels")
		r := newRig(t.Context(), t, args())
		room := make(map[string]int)
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			name := fmt.Sprint("n", i)
			r.join(name, "zone="+rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "zone"), "rack="+rapid.SampledFrom([]string{"1", "2"}).Draw(t, "rack"))
			r.runs(name, "2", rapid.IntRange(0, 2).Draw(t, "of the revision"))
			r.runs(name, "1", rapid.IntRange(0, 2).Draw(t, "of an older one"))
			room[name] = rapid.IntRange(0, 3).Draw(t, "room")
		}
		before := batchView(r, levels)
		var placed []string
		k := rapid.IntRange(0, 6).Draw(t, "pods")
		for i := 0; len(placed) < k; i++ {
			pod := webPod(fmt.Sprint("p", i), levels).Obj()
			var fit, best []string
			for _, n := range before {
				if room[n.Name]-count(placed, n.Name) > 0 {
					fit = append(fit, n.Name)
				}
			}
			if len(fit) == 0 {
				break
			}
			state := framework.NewCycleState()
			for name, score := range r.rank(pod, state, fit...) {
				if score == fwk.MaxScore {
					best = append(best, name)
				}
			}
			slices.Sort(best)
			node := rapid.SampledFrom(best).Draw(t, "chosen")
			assumed := r.assume(pod, node)
			if rapid.IntRange(0, 4).Draw(t, "its binding fails") == 0 {
				r.must(r.cache.ForgetPod(r.logger, assumed))
				continue
			}
			placed = append(placed, node)
		}
		if err := oracle.CheckPromise(mustLevels(r, webPod("p", levels).Obj()).List, before, k, func(n string) int { return room[n] }, placed); err != nil {
			t.Fatalf("%s: %v", strings.Join(placed, " "), err)
		}
	})
}

// batchView is what the cluster holds for the batch of web's second revision.
func batchView(r *rig, levels string) []placement.Node {
	var nodes []placement.Node
	for _, info := range r.feasible() {
		n := placement.Node{Name: info.Node().Name, Values: clusterview.Values(info.Node(), mustLevels(r, webPod("p", levels).Obj()).List)}
		for _, p := range info.GetPods() {
			n.Tally = n.Tally.Add(placement.Tally{Workload: 1, All: 1})
			if p.GetPod().Labels["pod-template-hash"] == "2" {
				n.Tally.Revision++
			}
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b placement.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

func count(names []string, name string) (n int) {
	for _, x := range names {
		if x == name {
			n++
		}
	}
	return n
}
