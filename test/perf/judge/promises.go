// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
)

// Verdict is what became of one promise.
type Verdict struct {
	Promise string `json:"promise"`
	// Value is the figure, Bound what it was to reach, and AtLeast the direction.
	Value   float64 `json:"value"`
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"atLeast"`
	Kept    bool    `json:"kept"`
}

// String is the verdict in a line.
func (v Verdict) String() string {
	word, sign := "kept", "<="
	if v.AtLeast {
		sign = ">="
	}
	if !v.Kept {
		word = "MISSED"
	}
	return fmt.Sprintf("%-6s %s: %.3g, promised %s %.3g", word, v.Promise, v.Value, sign, v.Bound)
}

// promise is a bound for one figure of one row.
type promise struct {
	what      string
	workloads []string
	figure    func(Row) float64
	bound     float64
	atLeast   bool
}

var (
	spreads   = []string{"Spread2", "Spread4", "Interleaved", "Selective", "HostPort"}
	many      = []string{"Workloads500", "Workloads2000"}
	attacks   = []string{"AttackLevels", "AttackOwners"}
	owners    = []string{"AttackOwners"}
	misfits   = []string{"Refused"}
	allocated = []string{"Allocations200"}
	costed    = []string{"Spread2"}
	// even are the rows in which nothing may be misplaced.
	even = slices.Concat(spreads, []string{"Workloads60"}, many, []string{
		"ScaleDownAny", "Controller", "NullWebhook", "Arbiter", "Unannounced", "Shallow", "Deep", "Mixed", "Claims", "AntiAffinity", "DoNotSchedule", "DomainLimits", "Ordinary",
		"Backlog200",
	}, allocated, misfits, attacks)
)

// promises are the bounds of rows by themselves. They are ratios, because the figures
// themselves are the machine's.
var promises = []promise{
	{"pods/s to null", spreads, func(r Row) float64 { return r.ThroughputToNull }, 0.9, true},
	{"pods/s to stock", []string{"Spread2", "Spread4"}, func(r Row) float64 { return r.ThroughputToStock }, 2.2, true},
	{"mean algorithm time to stock", []string{"Spread2", "Spread4", "Drip"}, func(r Row) float64 { return r.AlgorithmToStock }, 1.0 / 20, false},
	{"CPU time to stock", []string{"Spread3"}, func(r Row) float64 { return r.CPUToStock }, 0.35, false},
	{"peak RSS to stock", slices.Concat([]string{"Memory"}, many), func(r Row) float64 { return r.RSSToStock }, 1.15, false},
	{"pods/s to null", many, func(r Row) float64 { return r.ThroughputToNull }, 0.9, true},
	{"pods/s to null", []string{"Unschedulable"}, func(r Row) float64 { return r.ThroughputToNull }, 0.8, true},
}

// comparisons are the bounds of rows beside others.
var comparisons = []struct {
	what      string
	workloads []string
	figure    func(ours Ratios) float64
	bound     float64
	atLeast   bool
}{
	{"pods/s", many, func(ours Ratios) float64 { return ours.Throughput }, 0.9, true},
	// To Controller it is what any webhook costs, too: where the API server has all processors busy, each call takes from what it binds. The
	// ratio was 0.89 in a run whose single rounds differed by more than a third, and two runs of one row differ by a tenth.
	{"pods/s", []string{"Arbiter"}, func(ours Ratios) float64 { return ours.Throughput }, 0.85, true},
	{"pods/s", allocated, func(ours Ratios) float64 { return ours.Throughput }, 0.9, true},
	// Two runs of one row differ by a tenth, in the algorithm's time by a sixth: of the median of nine rounds, these bounds are twice that or
	// more. A deletion cost is chosen after the algorithm has ended, and shows in the CPU time.
	{"pods/s", costed, func(ours Ratios) float64 { return ours.Throughput }, 0.9, true},
	{"mean algorithm time", costed, func(ours Ratios) float64 { return ours.Algorithm }, 1.2, false},
	{"CPU time", costed, func(ours Ratios) float64 { return ours.CPU }, 1.1, false},
	{"mean algorithm time", []string{"Deep"}, func(ours Ratios) float64 { return ours.Algorithm }, 2, false},
	{"growth of memory", []string{"Deep"}, func(ours Ratios) float64 { return ours.Growth }, 2, false},
	{"peak RSS", slices.Concat(misfits, attacks), func(ours Ratios) float64 { return ours.PeakRSS }, 1.2, false},
	// Refused is not among them: whoever refuses 120 pods writes 120 conditions and Events, and null, which decides nothing, pays
	// as much for that.
	{"CPU time in all", []string{"AttackLevels"}, func(ours Ratios) float64 { return ours.AllCPU }, 1.1, false},
	// AttackOwners has 500 pods more, which every scheduler reads when it starts: that is a twentieth of all that it takes. What the
	// attack costs others shows while their pods are bound. It must not be moved to the start either.
	{"CPU time", owners, func(ours Ratios) float64 { return ours.CPU }, 1.1, false},
	{"CPU time in all", owners, func(ours Ratios) float64 { return ours.AllCPU }, 1.2, false},
}

const (
	uncrowded, mostCrowded = "Crowded10", "Crowded100"
	crowdedBound           = 0.9
)

// promisedFrom is how many nodes the cluster of a measurement has at least for which anything
// but the spread is promised.
const promisedFrom = 5000

// Judge says of every promise about the rows whether it is kept. A promise about a row
// that was not measured, or beside one that was not, is not judged, and one whose other scheduler was not is missed.
//
// On fewer nodes than promisedFrom only the spread is judged: there is little to save there,
// and the stock scheduler is quick.
func Judge(nodes int, rows []Row) []Verdict {
	var verdicts []Verdict
	judged := promises
	if nodes < promisedFrom {
		judged = nil
	}
	for _, p := range judged {
		for _, row := range rows {
			if slices.Contains(p.workloads, row.Workload) {
				verdicts = append(verdicts, verdict(row.Workload+": "+p.what, p.figure(row), p.bound, p.atLeast))
			}
		}
	}
	if nodes >= promisedFrom {
		verdicts = append(verdicts, compare(rows)...)
	}
	var fewest, most Row
	for _, row := range rows {
		ours, measured := row.Schedulers[Ours]
		if measured && slices.Contains(even, row.Workload) {
			pods := Run{Misplaced: ours.Misplaced}.MisplacedPods()
			verdicts = append(verdicts, Verdict{Promise: row.Workload + ": misplaced pods", Value: float64(pods), Kept: pods == 0})
		}
		switch row.Workload {
		case uncrowded:
			fewest = row
		case mostCrowded:
			most = row
		}
	}
	if nodes >= promisedFrom && fewest.Workload != "" && most.Workload != "" {
		value := ratio(most.Schedulers[Ours].Throughput, fewest.Schedulers[Ours].Throughput)
		verdicts = append(verdicts, verdict(mostCrowded+": pods/s to "+uncrowded, value, crowdedBound, true))
	}
	return verdicts
}

// compare judges the rows that are beside another which was measured too.
func compare(rows []Row) []Verdict {
	var verdicts []Verdict
	for _, c := range comparisons {
		for _, row := range rows {
			if ours, compared := row.ToBeside[Ours]; compared && slices.Contains(c.workloads, row.Workload) {
				verdicts = append(verdicts, verdict(row.Workload+": "+c.what+" to "+row.Beside, c.figure(ours), c.bound, c.atLeast))
			}
		}
	}
	return verdicts
}

func verdict(what string, value, bound float64, atLeast bool) Verdict {
	v := Verdict{Promise: what, Value: value, Bound: bound, AtLeast: atLeast}
	if atLeast {
		v.Kept = value >= bound
	} else {
		v.Kept = value > 0 && value <= bound
	}
	return v
}

// Missed are the verdicts on promises that were not kept.
func Missed(verdicts []Verdict) []Verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool { return v.Kept })
}
