// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/test/perf/load"
)

// good are rounds of a workload in which every promise is kept.
func good(workload string) []Run {
	var runs []Run
	for round := 1; round <= 3; round++ {
		runs = append(runs,
			Run{Workload: workload, Scheduler: Stock, Round: round, Pods: 1000, Seconds: 10, CPUSeconds: 10, PeakRSS: 100, Algorithm: Algorithm{Mean: 8}, Misplaced: []Misplaced{{"zone", 7}}},
			Run{Workload: workload, Scheduler: Null, Round: round, Pods: 1000, Seconds: 4, CPUSeconds: 2, PeakRSS: 100, AllCPUSeconds: 3, Algorithm: Algorithm{Mean: 0.1}},
			Run{Workload: workload, Scheduler: Ours, Round: round, Pods: 1000, Seconds: 4, CPUSeconds: 3, PeakRSS: 110, AllCPUSeconds: 5, Growth: 30, Algorithm: Algorithm{Mean: 0.2}, Misplaced: []Misplaced{{"zone", 0}}})
	}
	return runs
}

func allRows(change func(*Run)) []Row {
	var rows []Row
	var all []Run
	for _, w := range load.Workloads(5000) {
		runs := good(w.Name)
		for i := range runs {
			change(&runs[i])
		}
		all = append(all, runs...)
		rows = append(rows, Summarize(w.Name, w.Beside, all))
	}
	return rows
}

func TestSummarize(t *testing.T) {
	runs := good("Spread2")
	// One slow round of the machine, all schedulers alike, and one bad spread.
	runs[0].Seconds, runs[1].Seconds, runs[2].Seconds = 100, 40, 40
	runs[5].Misplaced = []Misplaced{{"zone", 1}, {NodeLevel, 2}}
	runs = append(runs, good("Other")...)
	row := Summarize("Spread2", "", runs)
	if row.Pods != 1000 || row.Rounds != 3 || row.ThroughputToNull != 1 || row.ThroughputToStock != 2.5 || row.RSSToStock != 1.1 || row.CPUToStock != 0.3 {
		t.Errorf("the row is %+v", row)
	}
	if ours := row.Schedulers[Ours]; ours.Throughput != 250 || ours.CPU != 3 || len(ours.Misplaced) != 2 {
		t.Errorf("ours is %+v, want the median of the throughput and the worst of the spread", ours)
	}
	if row := Summarize("Spread2", "Other", nil); len(row.Schedulers) != 0 || row.ThroughputToNull != 0 || len(row.ToBeside) != 0 {
		t.Errorf("of nothing comes %+v", row)
	}
}

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(tc.values); got != tc.want {
			t.Errorf("the median of %v is %v, want %v", tc.values, got, tc.want)
		}
	}
}

func TestPromisesAreKept(t *testing.T) {
	verdicts := Judge(promisedFrom, allRows(func(*Run) {}))
	if missed := Missed(verdicts); len(missed) > 0 {
		t.Errorf("missed: %v", missed)
	}
	// Each promise is about rows that exist.
	const inAll = 5 + 2 + 3 + 1 + 3 + 2 + 1 + 2 + 1 + 2 + 6 + 1 + 3 + 26 + 1
	if len(verdicts) != inAll {
		t.Errorf("there are %d verdicts, want %d", len(verdicts), inAll)
	}
}

// of changes the runs of a scheduler and of a row; "" is any.
func of(scheduler, row string, change func(*Run)) func(*Run) {
	return func(r *Run) {
		if (scheduler == "" || r.Scheduler == scheduler) && (row == "" || r.Workload == row) {
			change(r)
		}
	}
}

// A promise that is broken is seen, each by itself.
func TestPromisesAreMissed(t *testing.T) {
	seconds := func(n float64) func(*Run) { return func(r *Run) { r.Seconds = n } }
	for _, tc := range []struct {
		name    string
		changes []func(*Run)
		missed  []string
	}{
		{"slower than null", []func(*Run){of(Null, "HostPort", seconds(3.5))}, []string{"HostPort: pods/s to null"}},
		{"no faster than stock", []func(*Run){of(Stock, "Spread4", seconds(5))}, []string{"Spread4: pods/s to stock"}},
		{"a slow algorithm", []func(*Run){of(Ours, "Drip", func(r *Run) { r.Algorithm.Mean = 0.5 })}, []string{"Drip: mean algorithm time to stock"}},
		{
			"CPU and memory", []func(*Run){of(Ours, "", func(r *Run) { r.CPUSeconds, r.PeakRSS = 4, 120 })},
			[]string{"Spread3: CPU time to stock", "Memory: peak RSS to stock", "Workloads500: peak RSS to stock", "Workloads2000: peak RSS to stock"},
		},
		{
			"many workloads are slower than few, and null is as slow", []func(*Run){of(Null, "Workloads2000", seconds(5)), of(Ours, "Workloads2000", seconds(5))},
			[]string{"Workloads2000: pods/s to Workloads60"},
		},
		{"what fits nowhere takes long", []func(*Run){of(Ours, "Unschedulable", seconds(6))}, []string{"Unschedulable: pods/s to null"}},
		{
			"levels are dear", []func(*Run){of(Ours, "Deep", func(r *Run) { r.Algorithm.Mean, r.Growth = 0.5, 100 })},
			[]string{"Deep: mean algorithm time to Shallow", "Deep: growth of memory to Shallow"},
		},
		{
			"attacks succeed", []func(*Run){
				of(Ours, "AttackLevels", func(r *Run) { r.PeakRSS, r.AllCPUSeconds = 133, 5.6 }),
				of("", "AttackOwners", func(r *Run) { r.CPUSeconds, r.AllCPUSeconds = 3.4, 6.1 }),
			},
			[]string{
				"AttackLevels: peak RSS to Refused", "AttackLevels: CPU time in all to Refused", "AttackOwners: CPU time to Ordinary",
				"AttackOwners: CPU time in all to Ordinary",
			},
		},
		{"checks are dear", []func(*Run){of(Ours, "Arbiter", seconds(4.9))}, []string{"Arbiter: pods/s to NullWebhook"}},
		{
			"deletion costs are dear", []func(*Run){of(Ours, "ScaleDownAny", func(r *Run) { r.Seconds, r.CPUSeconds, r.Algorithm.Mean = 3.5, 2.6, 0.16 })},
			[]string{"Spread2: pods/s to ScaleDownAny", "Spread2: mean algorithm time to ScaleDownAny", "Spread2: CPU time to ScaleDownAny"},
		},
		{"more pods are read at the start", []func(*Run){of("", "AttackOwners", func(r *Run) { r.AllCPUSeconds = 5.9 })}, nil},
		{
			"refusals are dear for whoever writes them", []func(*Run){
				of("", "AttackLevels", func(r *Run) { r.AllCPUSeconds *= 1.5 }), of("", "Refused", func(r *Run) { r.AllCPUSeconds *= 1.5 }),
			}, nil,
		},
		{
			"one pod misplaced in one round", []func(*Run){of(Ours, "Interleaved", func(r *Run) {
				if r.Round == 2 {
					r.Misplaced = []Misplaced{{"zone", 1}}
				}
			})},
			[]string{"Interleaved: misplaced pods"},
		},
		{"crowds", []func(*Run){of(Ours, "Crowded100", seconds(5))}, []string{"Crowded100: pods/s to Crowded10"}},
		{
			"nothing was measured of the algorithm", []func(*Run){of("", "Drip", func(r *Run) { r.Algorithm = Algorithm{} })},
			[]string{"Drip: mean algorithm time to stock"},
		},
	} {
		var got []string
		rows := allRows(func(r *Run) {
			for _, change := range tc.changes {
				change(r)
			}
		})
		for _, v := range Missed(Judge(promisedFrom, rows)) {
			got = append(got, v.Promise)
		}
		if !slices.Equal(got, tc.missed) {
			t.Errorf("%s: missed %q, want %q", tc.name, got, tc.missed)
		}
	}
}

func TestMarkdown(t *testing.T) {
	rows := allRows(func(*Run) {})
	text := Report{Scale: "default", Nodes: 5000, Rounds: 3, Rows: rows, Verdicts: Judge(promisedFrom, rows)}.Markdown()
	for _, part := range []string{
		"| Spread2 | 1000 | 100 | 250 | 250 | 1.00 | 2.50 | zone 7 | 0 | 0 |\n",
		"| Spread3: CPU time to stock | 0.3 | <= 0.35 | kept |\n",
		"| Deep, Shallow | ours | 250, 250: 1.00 | 0.200, 0.200: 1.00 | 3.00, 3.00: 1.00 | 5.00, 5.00: 1.00 | 0, 0: 1.00 | 0, 0: 1.00 | 0.0, 0.0 |\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the report does not say %q:\n%s", part, text)
		}
	}
	if text := (Report{Rounds: 2, Rows: rows[:1]}).Markdown(); !strings.Contains(text, "rounds: 2, 3 of "+rows[0].Workload+".\n") {
		t.Errorf("the report does not say that %s was measured three times:\n%s", rows[0].Workload, text)
	}
	for _, part := range []string{"Profiled", "Not complete"} {
		if strings.Contains(text, part) {
			t.Errorf("the report says %q:\n%s", part, text)
		}
	}
	columns := 0
	for line := range strings.Lines(text) {
		switch n := strings.Count(line, "|"); {
		case n == 0:
			columns = 0
		case columns == 0:
			columns = n
		case n != columns && !strings.Contains(line, "promise"):
			t.Errorf("a line has %d bars and the one before %d: %s", n, columns, line)
		}
	}
}

// A look at a small cluster judges the spread and nothing else.
func TestSmallClustersAreJudgedByTheirSpread(t *testing.T) {
	verdicts := Judge(promisedFrom-1, allRows(func(*Run) {}))
	if len(verdicts) != len(even) {
		t.Errorf("got %d verdicts, want one for each of %v: %v", len(verdicts), even, verdicts)
	}
	for _, v := range verdicts {
		if !strings.HasSuffix(v.Promise, ": misplaced pods") {
			t.Errorf("%q is judged", v.Promise)
		}
	}
}

// What is compared is what one round has: the machine may be slower in the next.
func TestRowsAreComparedWithinRounds(t *testing.T) {
	var runs []Run
	for round, slow := range []float64{1, 3, 2} {
		for workload, cpu := range map[string]float64{"Ordinary": 2, "AttackOwners": 3} {
			runs = append(runs, Run{Workload: workload, Scheduler: Ours, Round: round + 1, Pods: 1, Seconds: slow, CPUSeconds: slow, AllCPUSeconds: cpu * slow, PeakRSS: 10, Growth: int64(cpu)})
		}
	}
	got := Summarize("AttackOwners", "Ordinary", runs).ToBeside
	if want := map[string]Ratios{Ours: {Throughput: 1, CPU: 1, AllCPU: 1.5, PeakRSS: 1, Growth: 1.5}}; !maps.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := Summarize("AttackOwners", "Missing", runs).ToBeside; len(got) > 0 {
		t.Errorf("a row that was not measured compares as %+v", got)
	}
}

// Who reads figures must see what they are not.
func TestReportSaysWhatItIsNot(t *testing.T) {
	text := Report{Profiled: Ours, Ended: "interrupted"}.Markdown()
	for _, part := range []string{"**Profiled**: the figures of ours", "when it ended: interrupted\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("the report does not say %q:\n%s", part, text)
		}
	}
}

func TestMisplaced(t *testing.T) {
	node := func(name, zone string, count, room int) evenness.Node {
		return evenness.Node{Name: name, Values: []string{zone}, Count: count, Room: room}
	}
	levels := []evenness.Level{{Name: "zone"}}
	for _, tc := range []struct {
		name       string
		nodes      []evenness.Node
		zone, node int
	}{
		{"nothing", nil, 0, 0},
		{"even", []evenness.Node{node("1", "a", 2, 9), node("2", "b", 1, 9)}, 0, 0},
		{"a zone too full", []evenness.Node{node("1", "a", 5, 9), node("2", "b", 1, 9)}, 2, 0},
		{"a zone full because the other has no room", []evenness.Node{node("1", "a", 5, 9), node("2", "b", 1, 1)}, 0, 0},
		{"nodes of a zone", []evenness.Node{node("1", "a", 3, 9), node("2", "a", 0, 9), node("3", "b", 3, 9)}, 0, 1},
		{"the rest may lie anywhere", []evenness.Node{node("1", "a", 1, 9), node("2", "a", 2, 9), node("3", "a", 1, 9)}, 0, 0},
		{"two rests on one node", []evenness.Node{node("1", "a", 3, 9), node("2", "a", 1, 9), node("3", "a", 1, 9)}, 0, 1},
	} {
		got := CountMisplaced(levels, tc.nodes)
		if got[0] != (Misplaced{"zone", tc.zone}) || got[1] != (Misplaced{NodeLevel, tc.node}) {
			t.Errorf("%s: got %v, want zone %d and node %d", tc.name, got, tc.zone, tc.node)
		}
	}
}

// Nothing is misplaced exactly where the demo and the stories would find nothing to say.
func TestMisplacedAgreesWithEvenness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		levels := []evenness.Level{{Name: "zone"}, {Name: "rack"}}
		var nodes []evenness.Node
		for i := range rapid.IntRange(0, 9).Draw(t, "nodes") {
			fixed := rapid.IntRange(0, 2).Draw(t, "fixed")
			count := fixed + rapid.IntRange(0, 3).Draw(t, "count")
			nodes = append(nodes, evenness.Node{
				Name: string(rune('a' + i)), Values: []string{rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "zone"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "rack")},
				Fixed: fixed, Count: count, Room: count + rapid.SampledFrom([]int{0, 1, 100}).Draw(t, "room"),
			})
		}
		total := 0
		for _, m := range CountMisplaced(levels, nodes) {
			if m.Pods < 0 {
				t.Fatalf("%d pods are misplaced at level %s", m.Pods, m.Level)
			}
			total += m.Pods
		}
		if findings := evenness.Check(levels, nodes); (total == 0) != (len(findings) == 0) {
			t.Fatalf("%d pods are misplaced, while the findings are %v", total, findings)
		}
	})
}
