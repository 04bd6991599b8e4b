// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/espalier-scheduler/espalier/internal/evenness"
	"github.com/espalier-scheduler/espalier/internal/rig"
)

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
	byZone := make(map[string][]int)
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
		sum := 0
		for _, n := range byZone[zone] {
			sum += n
		}
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
