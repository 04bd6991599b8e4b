// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

func raw(kind string, spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "bad", "uid": "u"}, "spec": spec}}
}

// rawAllocation is one of partition p that claims the pods of team bad. A field is another one.
func rawAllocation(field string, value any) *unstructured.Unstructured {
	labels := map[string]any{"matchLabels": map[string]any{"team": "bad"}}
	spec := map[string]any{"partition": "p", "assignments": []any{map[string]any{"namespaceSelector": map[string]any{}, "podSelector": labels}}}
	spec[field] = value
	return raw("Allocation", spec)
}

// What another version of the kind has left is said, and stops nobody else.
func TestUndecodable(t *testing.T) {
	p := DecodePartition(raw("Partition", map[string]any{"reservablePercent": "many"}))
	a := DecodeAllocation(raw("Allocation", map[string]any{"rank": "first"}))
	if p.Name != "bad" || p.Invalid() == nil || !strings.Contains(p.Invalid().Error(), "spec.reservablePercent: it cannot be decoded") {
		t.Errorf("got %v, %v", p.Name, p.Invalid())
	}
	tree := NewTree([]*Partition{p, partition("p", "p")}, []*Allocation{a})
	if _, _, err := tree.PartitionOf(a); a.Name != "bad" || err == nil {
		t.Errorf("got %v, %v", a.Name, err)
	}
	if got := tree.PartitionOfNode(node("n", "p", "1")); got == nil || got.Name != "p" {
		t.Errorf("the node is of %v", got)
	}
	for _, spec := range []any{nil, "none", []any{}, map[string]any{"assignments": "all"}} {
		if a := DecodeAllocation(raw("Allocation", spec)); a.Name != "bad" || a.Invalid() == nil != (spec == nil) {
			t.Errorf("of %v: got %v, %v", spec, a.Name, a.Invalid())
		}
	}
}

// A field that cannot be decoded is named, and the pods of the allocation wait all the same.
func TestUndecodableFieldsFreeNoPods(t *testing.T) {
	for name, tc := range map[string]struct {
		field string
		value any
		says  []string
	}{
		"a rank":      {"rank", "first", []string{"spec.rank: it cannot be decoded", "apply the CRD"}},
		"a parent":    {"parent", map[string]any{}, []string{"spec.parent: it cannot be decoded"}},
		"a partition": {"partition", []any{"p"}, []string{"spec.partition: it cannot be decoded"}},
		"an amount":   {"reserved", map[string]any{"cpu": "1e1.5"}, []string{"spec.reserved: ", `"1e1.5" of cpu`, "write one such as"}},
		"an object":   {"reserved", map[string]any{"cpu": map[string]any{}}, []string{"spec.reserved: it cannot be decoded"}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := DecodeAllocation(rawAllocation(tc.field, tc.value))
			tree := NewTree([]*Partition{partition("p", "p")}, []*Allocation{bad, of("rival", "p", claimsAll)})
			_, reason, err := tree.PartitionOf(bad)
			if err == nil || reason != placementv1alpha1.ReasonInvalid {
				t.Fatalf("got %s, %v", reason, err)
			}
			for _, part := range tc.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the message does not say %q: %v", part, err)
				}
			}
			o := arrange(tree, nil, pod("runs", "bad", "1", "n"), pod("waits", "bad", "1", ""), pod("other", "x", "1", ""))
			if o.Held["runs"] == nil || o.Held["waits"] == nil {
				t.Errorf("its pods are not held: %v", o.Held)
			}
			wantOrder(t, o, "p", "other")
		})
	}
}

// Amounts are looked at before they are decoded: Kubernetes would compute with as many digits as an exponent says. Those here have few
// enough for a test that fails, and no cluster has as much.
func TestAmounts(t *testing.T) {
	good := []any{
		"0", "4", "+4", "-4", "0.5", ".5", "5.", "500m", "100n", "1u", "8Gi", "1.5Gi", "1e6", "1E6", "12e-3", "1e+99", "1e-99", "3k", "3M", "3G", "3T", "3P", "3E", "3Ei",
		strings.Repeat("9", 32), "0." + strings.Repeat("3", 32), int64(4), 4.0, nil,
	}
	bad := []any{
		"1e100", "1E100", "1e-100", "1e+1000000", "1e1000000", "-1e1000000", "1e-1000000", "0e1000000", "1e0000000001", "1e1.5", "1e.5", "1e", "e1", "", " 4", "4 ", "4\n", "Gi", "1gi", "1.2.3", "--1",
		strings.Repeat("9", 33), "0." + strings.Repeat("3", 33), "x" + strings.Repeat("9", 100_000),
	}
	for i, value := range append(good, bad...) {
		a := DecodeAllocation(rawAllocation("reserved", map[string]any{"cpu": value}))
		said := fmt.Sprint(a.Invalid())
		if refused := strings.Contains(said, "is no amount: write one such as"); refused != (i >= len(good)) || len(said) > 1000 {
			t.Errorf("%.60v: %.1000s", value, said)
		}
	}
}
