// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

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
	var pods []int
	for _, n := range evenness.Counts(0, o.Nodes) {
		pods = append(pods, n)
	}
	slices.SortFunc(pods, func(a, b int) int { return cmp.Compare(b, a) })
	var words []string
	for _, n := range pods {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, "/")
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
	if err != nil {
		t.Fatal(err)
	}
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
