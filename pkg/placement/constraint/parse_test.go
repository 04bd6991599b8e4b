// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

func ExampleParse() {
	constraints, err := constraint.Parse("node.role==worker, Node.Labels.disk != ssd, node.ip == 10.1.2.3/16")
	fmt.Println(constraint.Format(constraints), err)

	_, err = constraint.Parse("node.role == worker, node.ip == 10.1.2.300")
	fmt.Println(err)
	// Output:
	// node.role == worker, node.labels.disk != ssd, node.ip == 10.1.0.0/16 <nil>
	// constraint 2 "node.ip == 10.1.2.300": invalid address "10.1.2.300": use an address such as 10.1.2.3 or 2001:db8::2, or a range such as 10.1.0.0/16
}

func TestParse(t *testing.T) {
	const eq, ne = constraint.Equal, constraint.NotEqual
	for _, tc := range []struct {
		in, canonical string
		want          []constraint.Constraint
	}{
		{"node.id==x", "node.id == x", []constraint.Constraint{{Key: constraint.ID, Operator: eq, Value: "x"}}},
		{" NODE.Hostname != Node-1\n,\tnode.name==n ", "node.hostname != Node-1, node.name == n", []constraint.Constraint{
			{Key: constraint.Hostname, Operator: ne, Value: "Node-1"}, {Key: constraint.Name, Operator: eq, Value: "n"},
		}},
		{"Node.Labels.Rack==1,engine.labels.a/b!=c", "node.labels.Rack == 1, node.labels.a/b != c", []constraint.Constraint{
			{Key: constraint.Label, Label: "Rack", Operator: eq, Value: "1"}, {Key: constraint.Label, Label: "a/b", Operator: ne, Value: "c"},
		}},
		{"node.labels.node.labels.x == y", "node.labels.node.labels.x == y", []constraint.Constraint{
			{Key: constraint.Label, Label: "node.labels.x", Operator: eq, Value: "y"},
		}},
		{"node.ip==010.1.2.3/8,node.ip==10.1.2.3/8", "", nil},
		{"node.ip==10.1.2.3/8,node.ip!=2001:DB8:0::2,node.ip==10.0.0.1/32", "node.ip == 10.0.0.0/8, node.ip != 2001:db8::2, node.ip == 10.0.0.1", []constraint.Constraint{
			{Key: constraint.IP, Operator: eq, Value: "10.0.0.0/8", Range: netip.MustParsePrefix("10.0.0.0/8")},
			{Key: constraint.IP, Operator: ne, Value: "2001:db8::2", Range: netip.MustParsePrefix("2001:db8::2/128")},
			{Key: constraint.IP, Operator: eq, Value: "10.0.0.1", Range: netip.MustParsePrefix("10.0.0.1/32")},
		}},
		{"node.role==Manager,node.platform.arch!=X86_64,node.platform.os==Linux", "node.role == manager, node.platform.arch != amd64, node.platform.os == Linux", []constraint.Constraint{
			{Key: constraint.Role, Operator: eq, Value: "manager"}, {Key: constraint.Arch, Operator: ne, Value: "amd64"}, {Key: constraint.OS, Operator: eq, Value: "Linux"},
		}},
	} {
		got, err := constraint.Parse(tc.in)
		if (err == nil) != (tc.want != nil) || !slices.Equal(got, tc.want) || constraint.Format(got) != tc.canonical {
			t.Errorf("Parse(%q) = %v, %v\nwant %v", tc.in, got, err, tc.want)
		}
	}
}

// The vectors of 2.13 in their order. What SwarmKit's parser takes, ours takes for its form;
// keys without a meaning, which SwarmKit only finds out about on each node, it refuses as such.
func TestVector_2_13_Parse(t *testing.T) {
	for _, tc := range []struct {
		in, problem string
	}{
		{"", "no constraints in"}, {" ", "no constraints in"},
		{"nodeabc", "no operator in"}, {"node ~ abc", "no operator in"},
		{"1node==a2", "unknown key"}, {"no de== node1", "unknown key"}, {"no*de==node1", "unknown key"},
		{"==node1", "no key before"}, {"node==", "no value after"}, {"node== ", "no value after"}, {"no$de==node1", "unknown key"},
		// The form of these is right, and so it is where the key has a meaning.
		{" node == node1", "unknown key"}, {"NoDe==node1", "unknown key"}, {"no.de==node1", "unknown key"}, {"_node==_node1", "unknown key"},
		{"node.id == node1", ""}, {"NoDe.iD==node1", ""}, {"node.labels.no.de==node1", ""}, {"node.id==_node1", ""},
		{"node.id==[a-b]+c*(n|b)/", ""}, {"node.id==node 1", ""},
	} {
		t.Run("2.13 "+tc.in, func(t *testing.T) {
			_, err := constraint.Parse(tc.in)
			var refusal *syntax.Error
			if errors.As(err, &refusal) && refusal.Problem == tc.problem || err == nil && tc.problem == "" {
				return
			}
			t.Errorf("got %v, want the problem %q", err, tc.problem)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const use = "use KEY == VALUE or KEY != VALUE"
	const keys = "use node.id, node.name, node.hostname, node.ip, node.role, node.platform.os, node.platform.arch, node.labels.KEY or engine.labels.KEY"
	const value = `a value is letters, digits, blanks and : - _ . * ( ) ? + [ ] \ ^ $ | /, none of which stands for anything else`
	for _, tc := range []struct{ in, want string }{
		{"", `no constraints in "": ` + use},
		{"node.role=worker", `constraint 1 "node.role=worker": no operator in "node.role=worker": ` + use},
		{"node.role==worker,", `constraint 2 "": empty constraint: remove the comma, or ` + use},
		{"node.role==worker,==x", `constraint 2 "==x": no key before "==x": ` + use},
		{"node.ip == ", `constraint 1 "node.ip ==": no value after "node.ip": ` + use},
		{"role != manager", `constraint 1 "role != manager": unknown key "role": ` + keys + "; a node label of this very key is node.labels.role"},
		{"node.abc.bcd == high", `constraint 1 "node.abc.bcd == high": unknown key "node.abc.bcd": ` + keys + "; a node label of this very key is node.labels.node.abc.bcd"},
		{"no de == x", `constraint 1 "no de == x": unknown key "no de": ` + keys},
		{"node.labels. == x", `constraint 1 "node.labels. == x": no label key in "node.labels.": ` + keys},
		{"node.labels.-x == y", `constraint 1 "node.labels.-x == y": invalid label key "-x": a label key is at most 63 letters, digits, '-', '_' or '.' ` +
			`with a letter or digit at both ends, after an optional DNS name of at most 253 characters and '/'`},
		{"node.role == managr", `constraint 1 "node.role == managr": unknown role "managr": use manager or worker`},
		{"node.id == a>b", `constraint 1 "node.id == a>b": invalid value "a>b": ` + value},
		{"node.id === a", `constraint 1 "node.id === a": invalid value "= a": ` + value},
		{"node.id == a != b", `constraint 1 "node.id == a != b": invalid value "a != b": ` + value},
		{"node.id == a\nnode.role == worker", `constraint 1 "node.id == a\nnode.role == worker": invalid value "a\nnode.role == worker": ` + value},
	} {
		got, err := constraint.Parse(tc.in)
		if err == nil || err.Error() != tc.want || got != nil {
			t.Errorf("Parse(%q)\ngot  %v, %v\nwant %s", tc.in, got, err, tc.want)
		}
	}
	many := strings.Repeat("node.id!=a,", constraint.MaxConstraints-1) + "node.id!=b"
	if _, err := constraint.Parse(many); err != nil {
		t.Errorf("as many constraints as there may be: %v", err)
	}
	if _, err := constraint.Parse(many + ",node.id!=c"); err == nil || !strings.Contains(err.Error(), "use at most 64") {
		t.Errorf("one constraint too many: %v", err)
	}
}

// FuzzParse holds the parser to what its callers rely on: it never panics, what it takes survives Format, what it refuses fits an event.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "node.role == worker", "node.id==[a-b]+c*(n|b)/, Engine.Labels.x/y != z", "node.ip == 10.1.2.3/8,node.ip!=2001:DB8:0::2/129",
		"node.ip == ::ffff:10.0.0.1/104,node.ip==::ffff:1.2.3.4,node.ip==::ffff:0:0/90", "node.labels.node.labels.a == b", "node.platform.arch == X86_64",
		"=", "==", "a!==b", "node.labels.\u212a == \x00\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		constraints, err := constraint.Parse(in)
		if err != nil {
			if _, ok := errors.AsType[*syntax.Error](err); !ok {
				t.Errorf("a %T: %v", err, err)
			}
			placementtest.CheckRefusal(t, err, 1700)
			return
		}
		text := constraint.Format(constraints)
		again, err := constraint.Parse(text)
		if err != nil || !slices.Equal(again, constraints) {
			t.Errorf("Parse(%q) is formatted as %q, which is %v, %v", in, text, again, err)
		}
		for _, c := range constraints {
			if c.Value == "" || (c.Key == constraint.IP) != c.Range.IsValid() || (c.Key == constraint.Label) != (c.Label != "") {
				t.Errorf("Parse(%q) returns the broken %#v", in, c)
			}
		}
	})
}
