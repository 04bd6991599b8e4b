// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"cmp"
	"fmt"
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
	// Ports are those of the host that each task takes.
	Ports []Port
	// MaxPerNode bounds the service's tasks on a node, 0 if nothing does. With it
	// no node has older tasks; see filters.readLimit.
	MaxPerNode int
	// Constraints are in Docker's language; see property for how much of it.
	Constraints []string
	// Platforms are those that the service's image is built for, none for any.
	Platforms []Platform
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
	// Taken are the ports that another service has on this node.
	Taken []Port
	// Platform is the zero one where the node tells none.
	Platform Platform
	// Failures counts the tasks of the newest version that have failed here of late.
	Failures int
}

// Port is a port of the host, of every address. Its protocol is tcp, udp or sctp.
type Port struct {
	Number   uint32
	Protocol string
}

func (p Port) String() string { return fmt.Sprintf("%d/%s", p.Number, p.Protocol) }

// Platform is an operating system and an architecture, either empty for any.
type Platform struct {
	OS, Arch string
}

func (p Platform) String() string {
	if p.Arch == "" {
		return p.OS
	}
	return p.OS + "/" + p.Arch
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
	}{{"cpu", s.CPU}, {"memory", s.Memory}, {"at most per node", int64(s.MaxPerNode)}} {
		if what.value > 0 {
			fmt.Fprintf(&out, ", %s %d", what.name, what.value)
		}
	}
	for _, constraint := range s.Constraints {
		fmt.Fprintf(&out, ", %s", constraint)
	}
	if len(s.Ports) > 0 {
		fmt.Fprintf(&out, ", host ports %v", s.Ports)
	}
	if len(s.Platforms) > 0 {
		fmt.Fprintf(&out, ", for %v", s.Platforms)
	}
	if s.Unversioned {
		out.WriteString(", without a spec version")
	}
	out.WriteString("\n")
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "node\t%s\tstate\tplatform\tports taken\trunning\tolder\tothers\tfailures\troom", strings.Join(s.Labels, "\t"))
	for _, col := range columns {
		fmt.Fprintf(w, "\t%s", col.Title)
	}
	fmt.Fprintln(w)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%v\t%d\t%d\t%d\t%d\t%d", n.Name, strings.Join(n.values(s.Labels), "\t"), n.State,
			n.Platform, n.Taken, n.Running, n.Older, n.Others, n.Failures, c.Room(n))
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
