// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

var evennessFlag = flag.String("evenness", "", "write what the stock scheduler and ours made of the same pods into this folder: a table, and a picture of one case")

// evennessCases are what both schedulers are compared in, in the order of the table.
var evennessCases = []string{
	"61 pods on zones of 10, 5 and 2 nodes, constraints over hosts and zones: pods by zone",
	"the same, the zones listed first: pods by zone",
	"the same, nothing asked: pods by zone",
	"61 pods on these zones, nothing asked, scaled to 31: pods by zone",
	"12 pods, half of the nodes with a `PreferNoSchedule` taint: pods on these",
	"12 pods over two zones, with nodes that have no zone: pods on these",
	"six Deployments of two pods under one selector, three zones: pods by zone",
	"9 pods without an owner behind a Service, zones of 4, 2 and 1 nodes: pods by zone",
	"100 pods of five sizes on nodes of 4, 8 and 64 CPUs: least and most CPU requested of a node",
	"12 pods of high priority in a full cluster of three zones: pods by zone",
	"20 pods on zones of 4, 3 and 2 nodes, after three rolling updates: pods by zone",
	"6 pods on three zones, scaled to 18 while one is cordoned, and to 24 when it is back: pods by zone",
	"60 pods, one node of 20 refuses every pod: pods lost in a minute",
}

// compared has a row for each case.
var compared struct {
	sync.Mutex
	rows map[string][2]string
}

// beside notes what became of a case with the stock scheduler and with ours.
func (s *story) beside(name, stock, ours string) {
	s.Helper()
	if !slices.Contains(evennessCases, name) {
		s.Fatalf("%q is none of the cases", name)
	}
	compared.Lock()
	defer compared.Unlock()
	if compared.rows == nil {
		compared.rows = make(map[string][2]string)
	}
	compared.rows[name] = [2]string{stock, ours}
}

// byZones are the pods of each zone, most first: "21/20/20". A zone without any counts.
func byZones(o *rig.Observation) string {
	pods := slices.Sorted(maps.Values(evenness.Counts(0, o.Nodes)))
	slices.Reverse(pods)
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(pods), "[]"), " ", "/")
}

// evennessTable writes the rows as docs/evenness.md has them.
func evennessTable() (string, error) {
	compared.Lock()
	defer compared.Unlock()
	var out strings.Builder
	out.WriteString("| case | stock | Espalier |\n| --- | --: | --: |\n")
	for _, name := range evennessCases {
		row, there := compared.rows[name]
		if !there {
			return "", fmt.Errorf("nothing is known of %q: its story was not told, or failed", name)
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", name, row[0], row[1])
	}
	return out.String(), nil
}

// writeEvenness writes the table, if it is asked for.
func writeEvenness() error {
	if *evennessFlag == "" {
		return nil
	}
	table, err := evennessTable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*evennessFlag, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*evennessFlag, "evenness.md"), []byte(table), 0o644)
}

// docs/evenness.md has a row for each case, and no other.
func TestEvennessIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/evenness.md")
	must(t, err)
	if _, err := os.Stat("../../docs/evenness.svg"); err != nil {
		t.Error(err)
	}
	var rows []string
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| case") && !strings.HasPrefix(line, "| ---") {
			rows = append(rows, strings.TrimPrefix(cells[0], "| "))
			if strings.TrimSpace(cells[1]) == "" || strings.Trim(cells[2], "| \n") == "" {
				t.Errorf("a row has no figures: %s", line)
			}
		}
	}
	if !slices.Equal(rows, evennessCases) {
		t.Errorf("docs/evenness.md has\n%q, want\n%q", rows, evennessCases)
	}
}

// The picture is in these units.
const (
	panelWidth, zoneHeight, nodeWidth, barUnit, panelTop = 440, 64, 26, 8, 56
)

// panels draws what two schedulers made of the same pods, one beside the other: a row for each zone with a bar and the pods of each of its
// nodes. Pods of a zone above its share are red. It is one file, and readable on a light and on a dark page.
func panels(stock, ours *rig.Observation) string {
	var out strings.Builder
	zones := len(evenness.Counts(0, ours.Nodes))
	height := panelTop + zones*zoneHeight
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img" aria-label="pods by zone and node with the stock scheduler and with Espalier">
<style>.back{fill:#ffffff}text{fill:#1f2328}.n{font-size:12px;text-anchor:middle}.ok{fill:#2da44e}.over{fill:#cf222e}.node{fill:none;stroke:#8c959f}@media(prefers-color-scheme:dark){.back{fill:#0d1117}text{fill:#e6edf3}.node{stroke:#6e7681}}</style>
<rect class="back" width="%d" height="%d"/>
`, 2*panelWidth, height, 2*panelWidth, height)
	for i, panel := range []struct {
		name string
		o    *rig.Observation
	}{{"stock kube-scheduler", stock}, {"Espalier", ours}} {
		drawPanel(&out, i*panelWidth, panel.name, panel.o)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func drawPanel(out *strings.Builder, left int, name string, o *rig.Observation) {
	byZone, sums := make(map[string][]int), evenness.Counts(0, o.Nodes)
	pods := 0
	for i := range o.Nodes {
		zone := o.Nodes[i].Values[0]
		byZone[zone] = append(byZone[zone], o.Nodes[i].Count)
		pods += o.Nodes[i].Count
	}
	zones := slices.Sorted(maps.Keys(byZone))
	most := (pods + len(zones) - 1) / len(zones)
	over := 0
	for y, zone := range zones {
		sum := sums[zone]
		over += max(0, sum-most)
		top := panelTop + y*zoneHeight
		fmt.Fprintf(out, `<text x="%d" y="%d">%s: %d</text>`, left+10, top, zone, sum)
		fmt.Fprintf(out, `<rect class="ok" x="%d" y="%d" width="%d" height="10"/>`, left+100, top-10, barUnit*min(sum, most))
		fmt.Fprintf(out, `<rect class="over" x="%d" y="%d" width="%d" height="10"/>`, left+100+barUnit*most, top-10, barUnit*max(0, sum-most))
		for x, n := range byZone[zone] {
			fmt.Fprintf(out, `<rect class="node" x="%d" y="%d" width="%d" height="22" rx="3"/>`, left+100+x*(nodeWidth+4), top+8, nodeWidth)
			fmt.Fprintf(out, `<text class="n" x="%d" y="%d">%d</text>`, left+100+x*(nodeWidth+4)+nodeWidth/2, top+23, n)
		}
		out.WriteString("\n")
	}
	verdict := "as even as it can be"
	if over > 0 {
		verdict = fmt.Sprintf("pods above the share of their zone: %d", over)
	} else if complaints := o.Check(); len(complaints) > 0 {
		verdict = complaints[0]
	}
	fmt.Fprintf(out, `<text x="%d" y="22"><tspan font-weight="bold">%s</tspan> %s</text>`+"\n", left+10, name, verdict)
}

// picture writes the panels, if they are asked for.
func (s *story) picture(stock, ours *rig.Observation) {
	s.Helper()
	if *evennessFlag == "" {
		return
	}
	s.must(os.MkdirAll(*evennessFlag, 0o755), "making the folder of pictures")
	s.must(os.WriteFile(filepath.Join(*evennessFlag, "evenness.svg"), []byte(panels(stock, ours)), 0o644), "writing the picture")
}

// What the tree makes of any cluster is told by the data and the properties of pkg/placement/tree and pkg/plugins/spreadtree. These are the
// stories in which the API server, a controller or a node has a part.

// A zone that goes leaves its pods to the others, and when it comes back it gets new pods until it is level with them.
func TestZoneGoesAndComesBack(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	lost := s.zones(50, 2, 2, 2)[2]
	o := s.deployed("app", 12, "spread="+zoneLabel)
	s.counts(o, 0, 4, 4, 4)
	s.even(o)

	s.lose(lost...)
	o = s.settled("app", 12)
	s.counts(o, 0, 6, 6)
	s.even(o)

	s.nodes(2, 50, zone("zone-c"))
	before := o.OnNodes()
	o = s.scaledTo("app", 16)
	s.exactly(o, 0, map[string]int{"zone-a": 6, "zone-b": 6, "zone-c": 4})
	o.Fix(before)
	s.even(o)

	o = s.scaledTo("app", 19)
	s.counts(o, 0, 7, 6, 6)
}

// Zones have their shares, those that are said and those that their nodes have of CPU, and a rack is filled before another is begun.
func TestSharesAndPack(t *testing.T) {
	shares := byZone
	shares.Weights = map[string]int64{"zone-a": 70, "zone-b": 30}
	s := begin(t, spread.core(), shares, evenness.Level{Name: rackLabel, Pack: true})
	for _, z := range []string{"zone-a", "zone-b"} {
		for _, rack := range []string{z + "-1", z + "-2"} {
			s.nodes(2, 4, map[string]string{zoneLabel: z, rackLabel: rack})
		}
	}
	o := s.deployed("app", 10, "spread="+zoneLabel+";weight.zone-a=70;weight.zone-b=30,pack="+rackLabel)
	s.exactly(o, 0, map[string]int{"zone-a": 7, "zone-b": 3})
	s.counts(o, 1, 7, 3, 0, 0)
	s.even(o)

	// All nodes of a zone count, and other stories have zones of the usual names.
	large, small := "large-"+s.name, "small-"+s.name
	s.nodes(4, 20, zone(large))
	s.nodes(1, 40, zone(small))
	s.exactly(s.deployed("allocatable", 18, "spread="+zoneLabel+";share=Allocatable", inZones(large, small)), 0, map[string]int{large: 12, small: 6})
}

// inZones keeps a pod to zones.
func inZones(zones ...string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: zones}},
			}}},
		}}
	}
}

// A DaemonSet's pods have their nodes given: one each, whatever its template asks
// for, and the workload beside it is not pushed about by them.
func TestDaemonSet(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	nodes := slices.Concat(s.zones(20, 4, 2)...)
	s.make(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: selects("agent"), Template: s.template("agent", "spread="+zoneLabel)},
	})
	s.eachHas(s.settled("agent", 6), 1, nodes...)

	o := s.deployed("app", 12, "spread="+zoneLabel)
	s.counts(o, 0, 6, 6)
	s.even(o)

	// A node that comes later gets its pod, too.
	s.nodes(1, 20, zone("zone-b"))
	s.settled("agent", 7)
}

// A pod that waits for a node is bound to a new one in the moment in which that takes pods. It runs: the node takes none before
// somebody plays it. KWOK forgets the pods of a node that it has not in its hands.
func TestAPodThatWaitsForANewNode(t *testing.T) {
	s := begin(t, spread.core(), byZone)
	s.pod("app", s.template("app", ""))
	s.refusal("app")
	node := s.newNode(1, zone("zone-a"))
	notReady := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse
	})
	if *nodesFlag == "devcluster" && !notReady {
		s.Errorf("devcluster makes a new node with conditions %v: without Ready=False it takes pods at once", node.Status.Conditions)
	}
	s.settled("app", 1)
}
