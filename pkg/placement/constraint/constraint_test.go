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

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// maxMessage bounds a refusal, in bytes.
const maxMessage = 1700

// TestMain settles what the properties begin with.
func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	m.Run()
}

// A name that begins with a number is that of the vectors of SwarmKit's own tests. refused says that ours refuses the expression with a
// message where SwarmKit refuses every node, or none, without one.
const refused = "refused"

// vectorNode is the node of 2.12 with something more.
func vectorNode(change ...func(*constraint.Node)) *constraint.Node {
	n := &constraint.Node{ID: "nodeid-1", Addresses: []string{"186.17.9.41"}, Labels: map[string]string{}}
	for _, f := range change {
		f(n)
	}
	return n
}

func labelled(key, value string) func(*constraint.Node) {
	return func(n *constraint.Node) { n.Labels[key] = value }
}

func named(hostname string) func(*constraint.Node) {
	return func(n *constraint.Node) { n.Hostname = hostname }
}

func built(os, arch string) func(*constraint.Node) {
	return func(n *constraint.Node) { n.OS, n.Arch = os, arch }
}

func at(addresses ...string) func(*constraint.Node) {
	return func(n *constraint.Node) { n.Addresses = addresses }
}

func manager(n *constraint.Node) { n.Manager = true }

type vector struct {
	name, text string
	node       *constraint.Node
	want       string
}

func (v vector) check(t *testing.T) {
	t.Helper()
	constraints, err := constraint.Parse(v.text)
	got := refused
	if err == nil {
		got = "no"
		if constraint.Hold(constraints, v.node) {
			got = "ok"
		}
	}
	if got != v.want {
		t.Errorf("%q: got %s (%v), want %s", v.text, got, err, v.want)
	}
}

func TestVector_2_12(t *testing.T) {
	v6 := vectorNode(at("2001:db8::2"))
	for _, v := range []vector{
		{"2.12 unknown key", "node.abc.bcd == high", vectorNode(), refused},
		{"2.12 unknown key, not equal", "node.abc.bcd != high", vectorNode(), refused},

		{"2.12 hostname, none", "node.hostname != node-1", vectorNode(), "ok"},
		{"2.12 hostname, another", "node.hostname != node-1", vectorNode(named("node-2")), "ok"},
		{"2.12 hostname, this", "node.hostname != node-1", vectorNode(named("node-1")), "no"},
		{"2.12 hostname, in other case", "node.hostname != node-1", vectorNode(named("NODe-1")), "no"},

		{"2.12 ip v4", "node.ip == 186.17.9.41", vectorNode(), "ok"},
		{"2.12 ip v4, not equal", "node.ip != 186.17.9.41", vectorNode(), "no"},
		{"2.12 ip v4, another", "node.ip == 186.17.9.42", vectorNode(), "no"},
		{"2.12 ip v4, range with host bits", "node.ip == 186.17.9.4/24", vectorNode(), "ok"},
		{"2.12 ip v4, another range", "node.ip == 186.17.8.41/24", vectorNode(), "no"},
		{"2.12 ip v4, range too long", "node.ip == 186.17.9.41/34", vectorNode(), refused},
		{"2.12 ip v4, no address, not equal", "node.ip != 266.17.9.41", vectorNode(), refused},
		{"2.12 ip v4, of nobody, not equal", "node.ip != 0.0.0.0", vectorNode(), "ok"},
		{"2.12 ip, empty: not applicable to SwarmKit", "node.ip == ", vectorNode(), refused},
		{"2.12 ip, not one", "node.ip == not_ip_addr", vectorNode(), refused},
		{"2.12 ip v6", "node.ip == 2001:db8::2", v6, "ok"},
		{"2.12 ip v6, spelled in another way", "node.ip == 2001:db8:0::2", v6, "ok"},
		{"2.12 ip v6, not equal to a range of one", "node.ip != 2001:db8::2/128", v6, "no"},
		{"2.12 ip v6, range", "node.ip == 2001:db8::/64", v6, "ok"},
		{"2.12 ip v6, another range", "node.ip == 2001:db9::/64", v6, "no"},
		{"2.12 ip v6, another range, not equal", "node.ip != 2001:db9::/64", v6, "ok"},
		{"2.12 ip, node has none", "node.ip == 0.0.0.0", vectorNode(at()), "no"},
		{"2.12 ip, node has none, not equal", "node.ip != 0.0.0.0", vectorNode(at()), "ok"},

		{"2.12 id", "node.id == nodeid-1", vectorNode(), "ok"},
		{"2.12 id, longer", "node.id == nodeid-1-extra", vectorNode(), "no"},
		{"2.12 id, shorter", "node.id == nodeid-", vectorNode(), "no"},
		{"2.12 role worker", "node.role == worker", vectorNode(), "ok"},
		{"2.12 role manager", "node.role == manager", vectorNode(), "no"},
		{"2.12 role of no name", "node.role == worker-manager", vectorNode(), refused},

		{"2.12 os, no platform", "node.platform.os == linux", vectorNode(), "no"},
		{"2.12 os", "node.platform.os == linux", vectorNode(built("linux", "x86_64")), "ok"},
		{"2.12 os, another", "node.platform.os == linux", vectorNode(built("windows", "x86_64")), "no"},
		// SwarmKit does not know here that these two are one, and its platform filter does.
		{"2.12 arch: ours differs", "node.platform.arch == amd64", vectorNode(built("windows", "x86_64")), "ok"},
		{"2.12 arch, not equal: ours differs", "node.platform.arch != amd64", vectorNode(built("windows", "x86_64")), "no"},

		{"2.12 label, none", "node.labels.security == high", vectorNode(), "no"},
		{"2.12 label", "node.labels.security == high", vectorNode(labelled("security", "high")), "ok"},
		{"2.12 engine label, none", "engine.labels.disk != ssd", vectorNode(), "ok"},
		{"2.12 engine label", "engine.labels.disk != ssd", vectorNode(labelled("disk", "ssd")), "no"},
		{"2.12 engine label, and others", "engine.labels.disk != ssd", vectorNode(labelled("disk", "ssd"), labelled("memory", "large")), "no"},
	} {
		t.Run(v.name, v.check)
	}
}

// The last row of 2.12: constraints are joined by "and". Its "Ubuntu 14.04" cannot be a label's value on Kubernetes, which has no blanks.
func TestVector_2_12_Several(t *testing.T) {
	const two = "node.hostname == node-1, engine.labels.operatingsystem != Ubuntu_14.04"
	const three = two + ", node.labels.security == high"
	os := func(value string) func(*constraint.Node) { return labelled("operatingsystem", value) }
	for _, v := range []vector{
		{"2.12 and, no hostname", two, vectorNode(), "no"},
		{"2.12 and, hostname", two, vectorNode(named("node-1")), "ok"},
		{"2.12 and, the excluded system", two, vectorNode(named("node-1"), os("Ubuntu_14.04")), "no"},
		{"2.12 and, in other case", two, vectorNode(named("node-1"), os("ubuntu_14.04")), "no"},
		{"2.12 and, another system", two, vectorNode(named("node-1"), os("ubuntu_15.04")), "ok"},
		{"2.12 and, label missing", three, vectorNode(named("node-1"), os("ubuntu_15.04")), "no"},
		{"2.12 and, label low", three, vectorNode(named("node-1"), os("ubuntu_15.04"), labelled("security", "low")), "no"},
		{"2.12 and, label high", three, vectorNode(named("node-1"), os("ubuntu_15.04"), labelled("security", "high")), "ok"},
		{"2.12 and, one more label", three, vectorNode(named("node-1"), os("ubuntu_15.04"), labelled("security", "high"), labelled("disk", "ssd")), "ok"},
	} {
		t.Run(v.name, v.check)
	}
}

// The rows "Match" of 2.13. Where SwarmKit matches a set, a node of ours has several of one thing: addresses.
func TestVector_2_13_Match(t *testing.T) {
	foo := func(value string) *constraint.Node { return vectorNode(labelled("x", value)) }
	for _, v := range []vector{
		{"2.13 foo", "node.labels.x == foo", foo("foo"), "ok"},
		{"2.13 foo, shorter", "node.labels.x == foo", foo("fo"), "no"},
		{"2.13 foo, longer", "node.labels.x == foo", foo("fooE"), "no"},
		{"2.13 not foo", "node.labels.x != foo", foo("foo"), "no"},
		{"2.13 not foo, another", "node.labels.x != foo", foo("bar"), "ok"},
		{"2.13 not foo, shorter", "node.labels.x != foo", foo("fo"), "ok"},
		{"2.13 not foo, longer", "node.labels.x != foo", foo("fooExtra"), "ok"},
		{"2.13 star, shorter", "node.labels.x == f*o", foo("fo"), "no"},
		{"2.13 star", "node.labels.x == f*o", foo("f*o"), "ok"},
		{"2.13 star, in other case", "node.labels.x == f*o", foo("F*o"), "ok"},
		{"2.13 star is no pattern", "node.labels.x == f*o", foo("foo"), "no"},
		{"2.13 set without it", "node.ip == 10.0.0.9", vectorNode(at("10.0.0.1", "10.0.0.2", "10.0.0.3")), "no"},
		{"2.13 set with it", "node.ip == 10.0.0.9", vectorNode(at("10.0.0.1", "10.0.0.9", "10.0.0.3")), "ok"},
		{"2.13 set with it, not equal", "node.ip != 10.0.0.9", vectorNode(at("10.0.0.1", "10.0.0.9", "10.0.0.3")), "no"},
		{"2.13 dot and dollar are no pattern", "node.labels.x == f.-$o", foo("fa-$o"), "no"},
		{"2.13 dot and dollar", "node.labels.x == f.-$o", foo("f.-$o"), "ok"},
	} {
		t.Run(v.name, v.check)
	}
}

func TestHolds(t *testing.T) {
	for _, v := range []vector{
		{"manager", "node.role == MANAGER", vectorNode(manager), "ok"},
		{"not a worker", "node.role != worker", vectorNode(manager), "ok"},
		{"worker is no manager", "node.role != manager", vectorNode(manager), "no"},
		{"name", "node.name == n1", &constraint.Node{Name: "n1", Hostname: "h1"}, "ok"},
		{"name is no hostname", "node.name == h1", &constraint.Node{Name: "n1", Hostname: "h1"}, "no"},
		{"arm", "node.platform.arch == aarch64", vectorNode(built("linux", "arm64")), "ok"},
		{"the key of a label differs by case", "node.labels.Disk == ssd", vectorNode(labelled("disk", "ssd")), "no"},
		{"label of Kubernetes", "node.labels.topology.kubernetes.io/zone == a", vectorNode(labelled("topology.kubernetes.io/zone", "a")), "ok"},
		{"an empty label is as good as none", "node.labels.x != a", vectorNode(labelled("x", "")), "ok"},
		{"address of version 4 in version 6", "node.ip == 186.17.0.0/16", vectorNode(at("::ffff:186.17.9.41")), "ok"},
		{"range of version 4 in version 6", "node.ip == ::ffff:186.17.0.0/112", vectorNode(), "ok"},
		{"both versions", "node.ip == 186.17.9.41, node.ip == 2001:db8::/32", vectorNode(at("186.17.9.41", "2001:db8::2")), "ok"},
		{"zone of an address", "node.ip == fe80::/10", vectorNode(at("fe80::1%eth0")), "ok"},
		{"what is no address", "node.ip == 0.0.0.0/0", vectorNode(at("node-1.example.com", "")), "no"},
	} {
		t.Run(v.name, v.check)
	}
	about, err := constraint.Parse("node.role == worker, engine.labels.x == y")
	if err != nil || !constraint.About(about, constraint.Role) || !constraint.About(about, constraint.Label) || constraint.About(about, constraint.IP) {
		t.Errorf("About: %v, %v", about, err)
	}
}

// On any node exactly one of == and != holds, and a list holds where each of it does.
func TestOperatorsAreOpposites(t *testing.T) {
	keys := rapid.SampledFrom([]string{"node.id", "node.name", "node.hostname", "node.role", "node.platform.os", "node.platform.arch", "node.labels.x", "node.ip"})
	word := rapid.SampledFrom([]string{"a", "A", "b", "x86_64", "amd64"})
	addresses := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "::ffff:10.0.0.1", "2001:db8::1", "10.0.0.0/30", "::/0"})
	rapid.Check(t, func(t *rapid.T) {
		n := &constraint.Node{
			ID: word.Draw(t, "id"), Name: word.Draw(t, "name"), Hostname: word.Draw(t, "hostname"), OS: word.Draw(t, "os"), Arch: word.Draw(t, "arch"),
			Manager: rapid.Bool().Draw(t, "manager"), Labels: map[string]string{"x": word.Draw(t, "label")}, Addresses: rapid.SliceOfN(addresses, 0, 3).Draw(t, "addresses"),
		}
		all, text, each := true, "", 0
		for range rapid.IntRange(1, 3).Draw(t, "constraints") {
			key, value := keys.Draw(t, "key"), word.Draw(t, "value")
			switch key {
			case "node.ip":
				value = addresses.Draw(t, "range")
			case "node.role":
				value = rapid.SampledFrom([]string{"worker", "manager"}).Draw(t, "role")
			}
			equal, err := constraint.Parse(key + "==" + value)
			placementtest.Must(t, err)
			unequal, err := constraint.Parse(key + "!=" + value)
			if err != nil || constraint.Hold(equal, n) == constraint.Hold(unequal, n) {
				t.Fatalf("%s and %s both hold or both do not, for %+v (%v)", equal[0].String(), unequal[0].String(), n, err)
			}
			all = all && constraint.Hold(equal, n)
			if each++; each > 1 {
				text += ","
			}
			text += key + "==" + value
		}
		joined, err := constraint.Parse(text)
		if err != nil || constraint.Hold(joined, n) != all {
			t.Fatalf("%q holds: %t, one by one: %t (%v)", text, !all, all, err)
		}
	})
}

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
	placementtest.WantRefusals(t, constraint.Parse, maxMessage, map[string]string{
		"":                      `no constraints in "": ` + use,
		"node.role=worker":      `constraint 1 "node.role=worker": no operator in "node.role=worker": ` + use,
		"node.role==worker,":    `constraint 2 "": empty constraint: remove the comma, or ` + use,
		"node.role==worker,==x": `constraint 2 "==x": no key before "==x": ` + use,
		"node.ip == ":           `constraint 1 "node.ip ==": no value after "node.ip": ` + use,
		"role != manager":       `constraint 1 "role != manager": unknown key "role": ` + keys + "; a node label of this very key is node.labels.role",
		"node.abc.bcd == high":  `constraint 1 "node.abc.bcd == high": unknown key "node.abc.bcd": ` + keys + "; a node label of this very key is node.labels.node.abc.bcd",
		"no de == x":            `constraint 1 "no de == x": unknown key "no de": ` + keys,
		"node.labels. == x":     `constraint 1 "node.labels. == x": no label key in "node.labels.": ` + keys,
		"node.labels.-x == y": `constraint 1 "node.labels.-x == y": invalid label key "-x": a label key is at most 63 letters, digits, '-', '_' or '.' ` +
			`with a letter or digit at both ends, after an optional DNS name of at most 253 characters and '/'`,
		"node.role == managr":               `constraint 1 "node.role == managr": unknown role "managr": use manager or worker`,
		"node.id == a>b":                    `constraint 1 "node.id == a>b": invalid value "a>b": ` + value,
		"node.id === a":                     `constraint 1 "node.id === a": invalid value "= a": ` + value,
		"node.id == a != b":                 `constraint 1 "node.id == a != b": invalid value "a != b": ` + value,
		"node.id == a\nnode.role == worker": `constraint 1 "node.id == a\nnode.role == worker": invalid value "a\nnode.role == worker": ` + value,
	})
	many := strings.Repeat("node.id!=a,", constraint.MaxConstraints-1) + "node.id!=b"
	if _, err := constraint.Parse(many); err != nil {
		t.Errorf("as many constraints as there may be: %v", err)
	}
	placementtest.WantBounds(t, constraint.Parse, maxMessage, map[string]string{many + ",node.id!=c": "use at most 64"})
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
		constraints, _ := placementtest.CheckParse(t, constraint.Parse, constraint.Format, maxMessage, in)
		for _, c := range constraints {
			if c.Value == "" || (c.Key == constraint.IP) != c.Range.IsValid() || (c.Key == constraint.Label) != (c.Label != "") {
				t.Errorf("Parse(%q) returns the broken %#v", in, c)
			}
		}
	})
}
