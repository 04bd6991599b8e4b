// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
)

// Cluster is one question to both schedulers: where do the new tasks of a service go?
type Cluster struct {
	Service Service
	Nodes   []Node
}

// Service is the service whose tasks are placed, in its newest version.
type Service struct {
	// Tasks are the new ones.
	Tasks int
	// Labels are those that preferences spread over, first preference first.
	Labels []string
	// CPU and Memory are what each task reserves, the old ones too. 0 is nothing.
	CPU, Memory int64
	// Port is a port of the host that each task takes, 0 if none.
	Port uint32
	// MaxPerNode bounds the service's tasks on a node, 0 if nothing does.
	MaxPerNode int
	// Constraints are in Docker's language; see allows for how much of it.
	Constraints []string
	// Unversioned tasks have no spec version: SwarmKit decides them one by one.
	Unversioned bool
}

// Node is a node with what runs on it.
type Node struct {
	Name   string
	Labels map[string]string
	State  State
	// CPU and Memory are what the node has in all.
	CPU, Memory int64
	// Running counts the tasks of the service's newest version, Older those of
	// the version before, Others those of other services.
	Running, Older, Others int
	// PortTaken says that another service has the service's port on this node.
	PortTaken bool
	// Failures counts the tasks of the newest version that have failed here of late.
	Failures int
}

// State is what a node's status and availability come to.
type State string

// A node that is down or drained has no tasks: a swarm has moved them elsewhere.
const (
	Active State = "active"
	Pause  State = "paused"
	Drain  State = "drained"
	Down   State = "down"
)

// faulty is SwarmKit's number of failures from which on a node is the last choice.
const faulty = 5

// Faulty says that the service has failed on the node often enough.
func (n *Node) Faulty() bool { return n.Failures >= faulty }

// Room is how many of the service's new tasks the filters allow on the node. It
// is SwarmKit's pipeline, said for one node and a whole batch.
func (c *Cluster) Room(n *Node) int {
	s := &c.Service
	if n.State != Active || !allows(s.Constraints, n.Labels) {
		return 0
	}
	room := int64(math.MaxInt32)
	old := int64(n.Running + n.Older)
	if s.CPU > 0 {
		room = min(room, n.CPU/s.CPU-old)
	}
	if s.Memory > 0 {
		room = min(room, n.Memory/s.Memory-old)
	}
	if s.MaxPerNode > 0 {
		room = min(room, int64(s.MaxPerNode)-old)
	}
	if s.Port > 0 {
		room = min(room, 1-old)
		if n.PortTaken {
			room = 0
		}
	}
	return int(max(0, room))
}

// allows reads the constraints that are generated here: node.labels.KEY, "==" or
// "!=", a value; all must hold, and a label that is missing equals nothing. It knows
// nothing of the rest of the language, and says so loudly.
func allows(constraints []string, labels map[string]string) bool {
	for _, c := range constraints {
		key, value, equal := strings.Cut(c, "==")
		if !equal {
			key, value, _ = strings.Cut(c, "!=")
		}
		label, ok := strings.CutPrefix(strings.TrimSpace(key), "node.labels.")
		if !ok {
			panic(fmt.Sprintf("constraint %q: only node.labels.KEY is compared", c))
		}
		if has := strings.EqualFold(labels[label], strings.TrimSpace(value)); has != equal {
			return false
		}
	}
	return true
}

// String draws the cluster for people.
func (c *Cluster) String() string { return c.Table(nil) }

// Table draws the cluster with further columns.
func (c *Cluster) Table(columns []Column) string {
	var out strings.Builder
	s := &c.Service
	fmt.Fprintf(&out, "%d tasks, spread over %q", s.Tasks, s.Labels)
	for _, what := range []struct {
		name  string
		value int64
	}{{"cpu", s.CPU}, {"memory", s.Memory}, {"host port", int64(s.Port)}, {"at most per node", int64(s.MaxPerNode)}} {
		if what.value > 0 {
			fmt.Fprintf(&out, ", %s %d", what.name, what.value)
		}
	}
	for _, constraint := range s.Constraints {
		fmt.Fprintf(&out, ", %s", constraint)
	}
	if s.Unversioned {
		out.WriteString(", without a spec version")
	}
	out.WriteString("\n")
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "node\t%s\tstate\trunning\tolder\tothers\tfailures\troom", strings.Join(s.Labels, "\t"))
	for _, col := range columns {
		fmt.Fprintf(w, "\t%s", col.Title)
	}
	fmt.Fprintln(w)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d", n.Name, strings.Join(n.values(s.Labels), "\t"), n.State,
			n.Running, n.Older, n.Others, n.Failures, c.Room(n))
		for _, col := range columns {
			fmt.Fprintf(w, "\t%d", col.Count[n.Name])
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // into memory
	return out.String()
}

// Column is one more number for each node.
type Column struct {
	Title string
	Count Placed
}

// Placed is how many new tasks went to each node.
type Placed map[string]int

// Total is the number of tasks placed.
func (p Placed) Total() int {
	total := 0
	for _, n := range p {
		total += n
	}
	return total
}

// values are what a table shows for labels; "-" is a label that is missing.
func (n *Node) values(labels []string) []string {
	var values []string
	for _, l := range labels {
		values = append(values, cmp.Or(n.Labels[l], "-"))
	}
	return values
}
