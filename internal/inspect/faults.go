// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/internal/snapshot"
)

// Faults is on which nodes revisions of workloads keep failing, by the records that schedulers keep.
type Faults struct {
	Faults []Fault `json:"faults"`
	// Records names those that were read.
	Records []string `json:"records"`
}

// Fault is the failures of one revision on one node.
type Fault struct {
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	Revision  string `json:"revision,omitempty"`
	Node      string `json:"node"`
	// Faulty says that the node is: it comes last for the revision.
	Faulty bool `json:"faulty"`
	// Suspect says that several workloads fail on the node, enough to taint it.
	Suspect bool `json:"suspect"`
	// Failures counts those that are remembered, by kind.
	Failures map[string]int `json:"failures"`
	// Last is the last of them.
	Last time.Time `json:"last"`
}

// ReadFaults reads the records of all schedulers of a cluster, of the workloads in one namespace or of all if it is "".
func ReadFaults(ctx context.Context, api client.Reader, namespace string) (*Faults, error) {
	all, err := snapshot.Records(ctx, api)
	if err != nil {
		return nil, fmt.Errorf("listing ConfigMaps, in which schedulers keep their records: %w", err)
	}
	out := &Faults{Faults: []Fault{}, Records: []string{}}
	for _, m := range all {
		r, err := record.Decode([]byte(m.Data[record.Key]))
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w", m.Namespace, m.Name, record.Key, err)
		}
		out.Records = append(out.Records, m.Namespace+"/"+m.Name)
		out.add(r, namespace)
	}
	slices.SortStableFunc(out.Faults, func(a, b Fault) int {
		return cmp.Or(faultyFirst(a, b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Node, b.Node))
	})
	return out, nil
}

func faultyFirst(a, b Fault) int {
	switch {
	case a.Faulty == b.Faulty:
		return 0
	case a.Faulty:
		return -1
	default:
		return 1
	}
}

// add adds what a record has.
func (f *Faults) add(r *record.Record, namespace string) {
	for i := range r.Revisions {
		is := &r.Revisions[i]
		if namespace != "" && record.Namespace(is.Of()) != namespace {
			continue
		}
		for j := range is.Nodes {
			n := &is.Nodes[j]
			if len(n.Failures) == 0 {
				continue
			}
			one := Fault{
				Namespace: record.Namespace(is.Of()), Workload: strings.ToLower(is.Regarding.Kind) + "/" + is.Regarding.Name, Revision: is.Revision, Node: n.Node,
				Faulty: slices.Contains(is.Marked, n.Node), Suspect: slices.Contains(r.Suspects, n.Node), Failures: make(map[string]int),
			}
			for _, failed := range n.Failures {
				one.Failures[failed.Kind]++
				if failed.At.After(one.Last) {
					one.Last = failed.At
				}
			}
			f.Faults = append(f.Faults, one)
		}
	}
}

// Kinds writes the failures in words: "3 Crashed, 2 ErrImagePull".
func (f *Fault) Kinds() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(f.Failures)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", f.Failures[kind], kind))
	}
	return strings.Join(kinds, ", ")
}
