// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/sampling"
	"github.com/espalier-scheduler/espalier/test/simulate/contention"
)

// figure is one picture, and one table: conflicts for a thousand pods, by one number that varies, for several cases.
type figure struct {
	name, title string
	x           string // what varies
	log         bool   // x is drawn on a logarithmic scale
	at          []float64
	series      []series
}

// series is one case: a line.
type series struct {
	name   string
	config func(x float64) contention.Config
	y      []float64
}

// seeds are how often each point is played, of large clusters once. What is shown is the mean.
func seeds(c contention.Config) uint64 {
	if c.Nodes >= 50000 {
		return 1
	}
	return 3
}

// pods is how many are placed in one play.
const pods = 1000

// sampled is a config of schedulers that sample, as in the experiments of Vela: ten groups, four schedulers.
func sampled(nodes int, fill float64, np sampling.BasisPoints, m int) contention.Config {
	return contention.Config{Nodes: nodes, Fill: fill, SampledNodes: np, Candidates: m, Pods: pods}
}

// byTree is a config of schedulers with a tree over all nodes, each of which has room for so many pods.
func byTree(nodes, slots int, fill float64, ties contention.Ties) contention.Config {
	return contention.Config{Nodes: nodes, Slots: slots, Fill: fill, Ties: ties, Pods: pods}
}

// figures are all of them, not played yet.
func figures() []*figure {
	fills := []float64{50, 60, 70, 80, 90, 95, 98, 99}
	full := &figure{name: "contention-fill", title: "Samples of 1,000 nodes", x: "percent of all room that is taken", at: fills}
	for _, np := range []sampling.BasisPoints{400, 800, 1200, 1600} {
		for _, m := range []int{1, 3} {
			full.series = append(full.series, series{name: fmt.Sprintf("Np %d %%, m = %d", np/100, m), config: func(x float64) contention.Config {
				return sampled(1000, x/100, np, m)
			}})
		}
	}
	large := &figure{name: "contention-nodes", title: "Samples of 4 % of the nodes", x: "nodes", log: true, at: []float64{1000, 2000, 5000, 10000, 20000, 50000, 100000}}
	for _, fill := range []float64{90, 99} {
		for _, m := range []int{1, 3} {
			large.series = append(large.series, series{name: fmt.Sprintf("%.0f %% taken, m = %d", fill, m), config: func(x float64) contention.Config {
				return sampled(int(x), fill/100, 400, m)
			}})
		}
	}
	ties := &figure{name: "contention-ties", title: "Trees over 1,000 nodes", x: "percent of all room that is taken", at: fills}
	for _, slots := range []int{1, 2, 8} {
		for _, by := range []contention.Ties{contention.ByName, contention.ByHash} {
			ties.series = append(ties.series, series{name: fmt.Sprintf("room for %d, ties by %s", slots, by), config: func(x float64) contention.Config {
				return byTree(1000, slots, x/100, by)
			}})
		}
	}
	return []*figure{full, large, ties}
}

// play plays all points.
func (f *figure) play() error {
	for i := range f.series {
		s := &f.series[i]
		for _, x := range f.at {
			sum, c := 0.0, s.config(x)
			n := seeds(c)
			for seed := range n {
				c.Seed = seed
				r, err := contention.Run(c)
				if err != nil {
					return fmt.Errorf("%s, %s at %v: %w", f.name, s.name, x, err)
				}
				sum += r.PerThousand()
			}
			s.y = append(s.y, sum/float64(n))
		}
	}
	return nil
}

// table is the figure as a page has it.
func (f *figure) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "| %s |", f.x)
	for _, s := range f.series {
		fmt.Fprintf(&out, " %s |", s.name)
	}
	out.WriteString("\n|" + strings.Repeat(" --- |", len(f.series)+1) + "\n")
	for i, x := range f.at {
		fmt.Fprintf(&out, "| %.0f |", x)
		for _, s := range f.series {
			fmt.Fprintf(&out, " %.0f |", s.y[i])
		}
		out.WriteString("\n")
	}
	return out.String()
}
