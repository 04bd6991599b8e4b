// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/espalier-scheduler/espalier/pkg/plugins"
	"github.com/espalier-scheduler/espalier/pkg/plugins/nodesampling"
	"github.com/espalier-scheduler/espalier/pkg/plugins/spreadtree"
)

// seen is what has taken part in all sections.
type seen struct {
	// before are the metrics before the first section, which other tests of the process have moved.
	before  map[string]uint64
	counted map[string]float64

	mu sync.Mutex // guards what follows
	// points are the extension points at which each plugin that was made is executed. Those that let pods in, and those that say which events help a pod, are
	// among them.
	points map[string]sets.Set[string]
	// kinds are what pods were like, and gating the plugins that have kept some out of the queue.
	kinds, gating sets.Set[string]
}

func newSeen(t *testing.T) *seen {
	metrics.Register()
	return &seen{before: executions(t), counted: counts(t), points: make(map[string]sets.Set[string]), kinds: sets.New[string](), gating: sets.New[string]()}
}

func (s *seen) note(in sets.Set[string], what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.Insert(what)
}

func (s *seen) kind(what string) { s.note(s.kinds, what) }
func (s *seen) gated(by string)  { s.note(s.gating, by) }

// registry is that of the plugins, which notes those that are made.
func (s *seen) registry() map[string]func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	registry := plugins.Registry()
	for name, factory := range registry {
		registry[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			p, err := factory(ctx, args, handle)
			if err != nil {
				return nil, err
			}
			all, err := points(ctx, p)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.points[name] = s.points[name].Union(sets.New(all...))
			return p, err
		}
	}
	return registry
}

// executions is how often each plugin was executed at each extension point, as kube-scheduler counts it, and how often it has said that an event helps.
func executions(t *testing.T) map[string]uint64 {
	t.Helper()
	times := make(map[string]uint64)
	eachMetric(t, "scheduler_plugin_execution_duration_seconds", func(_ string, m *dto.Metric) {
		at := make(map[string]string)
		for _, l := range m.GetLabel() {
			at[l.GetName()] = l.GetValue()
		}
		if at["extension_point"] != preEnqueue { // of which one in ten is counted
			times[at["plugin"]+" at "+at["extension_point"]] += m.GetHistogram().GetSampleCount()
		}
	})
	eachMetric(t, "scheduler_queueing_hint_execution_duration_seconds", func(_ string, m *dto.Metric) {
		at := make(map[string]string)
		for _, l := range m.GetLabel() {
			at[l.GetName()] = l.GetValue()
		}
		if at["hint"] == metrics.QueueingHintResultQueue {
			times[at["plugin"]+" at "+helping] += m.GetHistogram().GetSampleCount()
		}
	})
	return times
}

// preEnqueue is the extension point at which pods are kept out of the queue.
const preEnqueue = "PreEnqueue"

// helping is that a plugin says which events help a pod that it has refused.
const helping = "EnqueueExtensions"

// points are the extension points at which a plugin is executed, by its interfaces.
func points(ctx context.Context, p fwk.Plugin) (names []string, err error) {
	is := func(implements bool, at ...string) {
		if implements {
			names = append(names, at...)
		}
	}
	_, ok := p.(fwk.PreEnqueuePlugin)
	is(ok && !slices.Contains(letIn, p.Name()), preEnqueue)
	if e, ok := p.(fwk.EnqueueExtensions); ok {
		var all []fwk.ClusterEventWithHint
		all, err = e.EventsToRegister(ctx)
		is(len(all) > 0, helping)
	}
	if pre, ok := p.(fwk.PreFilterPlugin); ok {
		is(true, metrics.PreFilter)
		is(pre.PreFilterExtensions() != nil, metrics.PreFilterExtensionAddPod, metrics.PreFilterExtensionRemovePod)
	}
	_, ok = p.(fwk.FilterPlugin)
	is(ok, metrics.Filter)
	_, ok = p.(fwk.PostFilterPlugin)
	is(ok, metrics.PostFilter)
	_, ok = p.(fwk.PodGroupPostFilterPlugin)
	is(ok, metrics.PodGroupPostFilter)
	_, ok = p.(fwk.PreScorePlugin)
	is(ok, metrics.PreScore)
	_, ok = p.(fwk.ScorePlugin)
	is(ok, metrics.Score)
	_, ok = p.(fwk.ReservePlugin)
	is(ok, metrics.Reserve, metrics.Unreserve)
	_, ok = p.(fwk.PermitPlugin)
	is(ok, metrics.Permit)
	_, ok = p.(fwk.PreBindPlugin)
	is(ok, metrics.PreBind)
	_, ok = p.(fwk.BindPlugin)
	is(ok, metrics.Bind)
	_, ok = p.(fwk.PostBindPlugin)
	is(ok, metrics.PostBind)
	return names, err
}

// letIn are the plugins that let every pod in at PreEnqueue, where they are for package upstream to find them. What they do there is counted.
var letIn = []string{spreadtree.Name, nodesampling.Name}

// check sees that every plugin has taken part at every point, that there was every kind of pod, and that every counter has moved.
func (s *seen) check(t *testing.T) {
	t.Helper()
	times := executions(t)
	for _, name := range slices.Sorted(maps.Keys(plugins.Registry())) {
		if s.points[name] == nil {
			t.Errorf("no section has the plugin %s: add one", name)
		}
		for _, at := range sets.List(s.points[name]) {
			key := name + " at " + at
			if at == preEnqueue && s.gating.Has(name) {
				continue
			}
			if times[key] == s.before[key] {
				t.Errorf("the plugin %s is never executed at %s, or does nothing there: add a pod that it is for", name, at)
			}
		}
	}
	for _, kind := range wanted {
		if !slices.ContainsFunc(sets.List(s.kinds), func(is string) bool { return strings.Contains(is, kind) }) {
			t.Errorf("no pod is %q: add one", kind)
		}
	}
	before, now := withoutProfiles(s.counted), withoutProfiles(counts(t))
	for _, name := range slices.Sorted(maps.Keys(now)) {
		_, may := mayStay[name]
		switch moved := now[name] > before[name]; {
		case !moved && !may:
			t.Errorf("the counter %s never moves: add what it counts, or say in mayStay why that cannot be", name)
		case moved && may:
			t.Errorf("the counter %s moves, and mayStay says that it cannot", name)
		}
	}
}

// withoutProfiles adds up counters over the profiles.
func withoutProfiles(all map[string]float64) map[string]float64 {
	sums := make(map[string]float64)
	for name, value := range all {
		base, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		others := slices.DeleteFunc(strings.Split(labels, ","), func(l string) bool { return strings.HasPrefix(l, "profile=") })
		sums[base+"{"+strings.Join(others, ",")+"}"] += value
	}
	return sums
}

// witnessed is a profile whose decisions are seen.
type witnessed struct {
	framework.Framework
	g *goldenRun
}

// RunPreFilterPlugins begins a decision, of which everything is counted: kube-scheduler counts one in ten.
func (w *witnessed) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	w.g.journal.decided(pod.Name)
	state.(*framework.CycleState).SetRecordPluginMetrics(true)
	return w.Framework.RunPreFilterPlugins(ctx, state, pod)
}

// RunPodGroupPostFilterPlugins is beside RunPreFilterPlugins.
func (w *witnessed) RunPodGroupPostFilterPlugins(ctx context.Context, state *framework.CycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	state.SetRecordPluginMetrics(true)
	return w.Framework.RunPodGroupPostFilterPlugins(ctx, state, group, schedule)
}

// RunScorePlugins sees that one node is the best. Between several kube-scheduler takes the one that was filtered first, by goroutines that run at once.
func (w *witnessed) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	scores, status := w.Framework.RunScorePlugins(ctx, state, pod, nodes)
	if len(scores) == 0 {
		return scores, status
	}
	best := slices.MaxFunc(scores, func(a, b fwk.NodePluginScores) int { return int(a.TotalScore - b.TotalScore) })
	var all []string
	for _, s := range scores {
		if s.TotalScore == best.TotalScore {
			all = append(all, s.Name)
		}
	}
	if len(all) > 1 {
		slices.Sort(all)
		w.g.Errorf("to pod %s the nodes %q are equals, and chance decides: have the section tell them apart", pod.Name, all)
	}
	return scores, status
}

// counts are the metrics of Espalier that only grow, by name and labels.
func counts(t *testing.T) map[string]float64 {
	t.Helper()
	values := make(map[string]float64)
	eachMetric(t, "espalier_", func(name string, m *dto.Metric) {
		switch {
		case m.GetCounter() != nil:
			values[name] = m.GetCounter().GetValue()
		case m.GetHistogram() != nil:
			values[name] = float64(m.GetHistogram().GetSampleCount())
		}
	})
	return values
}

// eachMetric calls a function for each metric whose name has a prefix, with the name and the labels after it.
func eachMetric(t *testing.T, prefix string, do func(name string, m *dto.Metric)) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	must(t, err)
	for _, family := range families {
		name, is := strings.CutPrefix(family.GetName(), prefix)
		if !is {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			do(name+"{"+strings.Join(labels, ",")+"}", m)
		}
	}
}

// unsteady are counters that say how often something is done which is done at once for all changes that have come by then. How many come in time
// is chance.
var unsteady = []string{"failure_record_writes_total", "allocation_order_duration_seconds"}

// moved are the counters that have moved since the last call, each by how much for which values of its labels.
func (g *goldenRun) moved() (lines []string) {
	now := counts(g.T)
	by := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		more := now[name] - g.counted[name]
		if more == 0 {
			continue
		}
		base, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		if slices.Contains(unsteady, base) {
			continue
		}
		what := fmt.Sprintf("+%v", more)
		for _, label := range strings.Split(labels, ",") {
			if _, value, _ := strings.Cut(label, "="); label != "profile="+g.profile {
				what += " " + value
			}
		}
		by[base] = append(by[base], strings.TrimSpace(what))
	}
	for _, base := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, base+" "+strings.Join(by[base], ", "))
	}
	g.counted = now
	return lines
}

// gauges writes down what metrics are now. The plugins of the section must have set them: they are those of the process.
func (g *goldenRun) gauges(title string, names ...string) {
	g.Helper()
	g.write(title, func() (lines []string) {
		eachMetric(g.T, "espalier_", func(name string, m *dto.Metric) {
			base, _, _ := strings.Cut(name, "{")
			if slices.Contains(names, base) && (!strings.Contains(name, "profile=") || strings.Contains(name, "profile="+g.profile)) {
				lines = append(lines, fmt.Sprintf("%v %s", m.GetGauge().GetValue(), name))
			}
		})
		return lines
	})
}
