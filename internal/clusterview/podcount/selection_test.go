// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podcount_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/clusterview/podcount"
	"github.com/espalier-scheduler/espalier/internal/plugintest"
	"github.com/espalier-scheduler/espalier/pkg/placement"
)

// selects is a selector of a namespace.
func selects(t rapid.TB, namespace, text string) *clusterview.Selector {
	t.Helper()
	selector, err := labels.Parse(text)
	must(t, err)
	s := &clusterview.Selector{Selector: selector, Namespace: namespace, Labels: make(map[string]string)}
	for _, label := range []string{"svc", "pod-template-hash", "statefulset.kubernetes.io/pod-name"} {
		if value, found := selector.RequiresExactMatch(label); found {
			s.Labels[label] = value
		}
	}
	return s
}

// pair puts two pods that stand alone on a node, a-SERVICE and b-SERVICE, which a selector of their service selects.
func (v *view) pair(node, namespace string, service any) {
	for _, letter := range []string{"a-", "b-"} {
		name := fmt.Sprint(letter, service)
		p := plugintest.Pod(st.MakePod().Name(name).UID(namespace+name).Label("svc", fmt.Sprint(service)))
		p.Namespace = namespace
		v.info(node).AddPod(p)
	}
}

// under has the first of a pair be counted under the selector of both, and returns that and what it counts as.
func (v *view) under(t *testing.T, namespace string, service any) (*clusterview.Selector, clusterview.Identity) {
	t.Helper()
	s := selects(t, namespace, fmt.Sprint("svc=", service))
	return s, v.index.Under(clusterview.Identity{Workload: clusterview.Workload{Namespace: namespace, Kind: clusterview.KindPod, Name: fmt.Sprint("a-", service)}}, s)
}

// checkUnder holds what an identity counts as under selectors to an index that has seen nothing before, and to a count of all pods.
func (c *cluster) checkUnder(anew *podcount.Index, of clusterview.Identity) {
	for _, text := range []string{"svc=x", "svc=x,pod-template-hash=2", "svc in (x,y)", "svc", "!svc", "nobody=has", ""} {
		s := selects(c.t, "ns", text)
		is := c.index.Under(of, s)
		if want := anew.Under(of, s); is != want {
			c.t.Fatalf("%v under %q is %v, want %v", of, text, is, want)
		}
		if d := gocmp.Diff(talliesOf(anew, is), talliesOf(c.index, is)); d != "" {
			c.t.Fatalf("%v under %q: want -, got +:\n%s", of, text, d)
		}
		if merged := c.index.Merged(is); merged != is {
			if d := gocmp.Diff(talliesOf(c.index, is), talliesOf(c.index, merged)); d != "" {
				c.t.Fatalf("%v under %q: by itself -, with other owners +:\n%s", of, text, d)
			}
		}
		tallies, others := c.selected(of, s)
		if wide := is != of; wide != (others && text != "") {
			c.t.Fatalf("%v under %q is counted with others: %t, and it selects others: %t", of, text, wide, others)
		}
		if is == of {
			continue
		}
		if d := gocmp.Diff(tallies, talliesOf(c.index, is)); d != "" {
			c.t.Fatalf("%v under %q: want -, got +:\n%s", of, text, d)
		}
	}
}

// selected counts the pods that a selector selects as an identity sees them, and says whether some are of another workload.
func (c *cluster) selected(of clusterview.Identity, s *clusterview.Selector) (tallies map[string]placement.Tally, others bool) {
	tallies = make(map[string]placement.Tally)
	for _, info := range c.infos {
		var tally placement.Tally
		for _, p := range info.GetPods() {
			pod := p.GetPod()
			if !podcount.Counts(pod) {
				continue
			}
			tally.All++
			if !s.Matches(labels.Set(pod.Labels)) {
				continue
			}
			tally.Workload++
			id := c.rs.Identifier().Identify(pod)
			others = others || id.Workload != of.Workload
			// Pods without a revision are of none that could be older.
			older := id.Workload == of.Workload && id.Owner == of.Owner && id.Revision != of.Revision && id.Revision != "" && of.Revision != ""
			if !older {
				tally.Revision++
			}
		}
		tallies[info.Node().Name] = tally
	}
	return tallies, others
}

// A selector that is wide is counted under from then on, and one of a workload's own pods costs nothing.
func TestUnder(t *testing.T) {
	v := newView("n1", "n2").put("n1", "web-2", st.MakePod().Label("svc", "x")).put("n1", "web-1", st.MakePod().Label("svc", "x"))
	v.refresh()
	svc := selects(t, "ns", "svc=x")
	if got := v.index.Under(web, svc); got != web {
		t.Errorf("alone under its selector, it counts as %v", got)
	}
	v.info("n2").AddPod(plugintest.Pod(st.MakePod().Name("bare").UID("bare").Label("svc", "x")))
	v.refresh()
	wide := v.index.Under(web, svc)
	if want := (clusterview.Workload{Namespace: "ns", Kind: clusterview.KindSelector, Name: "svc=x"}); wide.Workload != want {
		t.Fatalf("with another pod under its selector, it counts as %v", wide)
	}
	// The pod of the older revision is on its way out; that of somebody else is there to stay.
	want := map[string]placement.Tally{"n1": {Revision: 1, Workload: 2, All: 2}, "n2": {Revision: 1, Workload: 1, All: 1}}
	plugintest.WantEqual(t, want, talliesOf(v.index, wide))
	for name, s := range map[string]*clusterview.Selector{"none": nil, "all": selects(t, "ns", ""), "other pods": selects(t, "ns", "svc=y")} {
		if got := v.index.Under(web, s); got != web {
			t.Errorf("under a selector of %s it counts as %v", name, got)
		}
	}
	if got := v.index.Merged(wide); got != wide {
		t.Errorf("with an older revision it shares the counts of %v", got)
	}
	v.leave("n1")
	v.refresh()
	if got := v.index.Merged(wide); got != (clusterview.Identity{Workload: wide.Workload}) {
		t.Errorf("without an older revision it shares the counts of %v", got)
	}
}

// So many wide selectors that some are forgotten are counted under again.
func TestManySelectors(t *testing.T) {
	v := newView("n1")
	for i := range 300 {
		v.pair("n1", "ns", i)
	}
	v.refresh()
	for range 2 {
		for i := range 300 {
			_, under := v.under(t, "ns", i)
			if got := talliesOf(v.index, under)["n1"]; got != (placement.Tally{Revision: 2, Workload: 2, All: 600}) {
				t.Fatalf("under selector %d there are %+v", i, got)
			}
		}
	}
}

// One namespace with more wide selectors than are counted under takes none of those of another.
func TestSelectorsOfOthersStay(t *testing.T) {
	v := newView("n1")
	const many = 300
	for i := range many {
		v.pair("n1", "greedy", i)
	}
	v.pair("n1", "other", "x")
	v.refresh()
	kept, _ := v.under(t, "other", "x")
	var greedy []*clusterview.Selector
	for i := range many {
		s, _ := v.under(t, "greedy", i)
		greedy = append(greedy, s)
	}
	counted := 0
	for _, s := range greedy {
		if v.index.Counts(s.Workload()) {
			counted++
		}
	}
	if !v.index.Counts(kept.Workload()) || counted != 255 {
		t.Errorf("the selector of the other namespace is counted under: %t, and %d of the many, want 255", v.index.Counts(kept.Workload()), counted)
	}
}

// Of many namespaces with a selector each, the one goes that was used least recently.
func TestSelectorsOfManyNamespaces(t *testing.T) {
	v := newView("n1")
	const many = 257
	name := func(i int) string { return fmt.Sprintf("ns-%03d", i) }
	for i := range many {
		v.pair("n1", name(i), "x")
	}
	v.refresh()
	for i := range many - 1 {
		v.under(t, name(i), "x")
	}
	v.under(t, name(0), "x") // and so the second is the one that was used least recently
	v.under(t, name(many-1), "x")
	for i, want := range map[int]bool{0: true, 1: false, 2: true, many - 1: true} {
		if got := v.index.Counts(selects(t, name(i), "svc=x").Workload()); got != want {
			t.Errorf("the selector of namespace %d is counted under: %t", i, got)
		}
	}
}

// Charts give pods two labels, each of which other workloads have too, and only together one alone. Nothing is counted
// under a selector of both, however many there are.
func TestSelectorsOfCharts(t *testing.T) {
	v := newView("n1")
	names, instances := []string{"web", "db", "cache"}, 120
	for i := range instances {
		for _, name := range names {
			p := st.MakePod().Label("name", name).Label("instance", fmt.Sprint(i))
			v.info("n1").AddPod(plugintest.Pod(p.Name(fmt.Sprint(name, i)).UID(fmt.Sprint(name, i)), fmt.Sprintf("apps/v1 StatefulSet %s%d uid", name, i)))
		}
	}
	v.refresh()
	for i := range instances {
		for _, name := range names {
			set := labels.Set{"name": name, "instance": fmt.Sprint(i)}
			s := &clusterview.Selector{Selector: labels.SelectorFromSet(set), Namespace: "ns", Labels: set}
			id := clusterview.Identity{Workload: clusterview.Workload{Namespace: "ns", Kind: "StatefulSet.apps", Name: fmt.Sprint(name, i)}}
			if got := v.index.Under(id, s); got != id {
				t.Fatalf("%s of instance %d counts as %v", name, i, got)
			}
			if v.index.Counts(s.Workload()) {
				t.Fatalf("pods are counted under %q", s)
			}
		}
	}
}
