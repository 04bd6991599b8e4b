// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement"
	"github.com/espalier-scheduler/espalier/pkg/placement/constraint"
	"github.com/espalier-scheduler/espalier/pkg/placement/hostport"
	"github.com/espalier-scheduler/espalier/pkg/placement/limit"
	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
)

// Refusal is why our filters keep a task off a node, "" if they do not.
type Refusal string

const (
	notReady     Refusal = "is not ready or not active"
	noConstraint Refusal = "fails constraints"
	noPlatform   Refusal = "has another platform"
	noPort       Refusal = "lacks a host port"
	noRoom       Refusal = "is at its limit"
	noResources  Refusal = "lacks resources"
)

// filters decide for one service by the rules that our plugins ask, read from the
// texts that people write into annotations. Readiness and resources, which are
// Kubernetes' own, are said here.
type filters struct {
	service     *Service
	constraints []constraint.Constraint
	wish        platform.Wish
	ports       hostport.Set
	// taken are the ports of other services, by node; nil if the service has none.
	taken map[string]hostport.Set
	// counts are nil without a limit. counted are the new tasks in them, by node.
	counts  *limit.Counts
	counted map[string]int64
}

func newFilters(c *Cluster) (*filters, error) {
	s := &c.Service
	f := &filters{service: s}
	var err error
	if len(s.Constraints) > 0 {
		if f.constraints, err = constraint.Parse(strings.Join(s.Constraints, ", ")); err != nil {
			return nil, err
		}
	}
	if len(s.Platforms) > 0 {
		var texts []string
		for _, p := range s.Platforms {
			texts = append(texts, p.String())
		}
		if f.wish.Listed, err = platform.Parse(strings.Join(texts, ", ")); err != nil {
			return nil, err
		}
	}
	if err := f.readPorts(c); err != nil {
		return nil, err
	}
	if err := f.readLimit(c); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *filters) readPorts(c *Cluster) (err error) {
	if len(f.service.Ports) == 0 {
		return nil
	}
	if f.ports, err = portSet(f.service.Ports); err != nil {
		return err
	}
	f.taken = make(map[string]hostport.Set)
	for i := range c.Nodes {
		if f.taken[c.Nodes[i].Name], err = portSet(c.Nodes[i].Taken); err != nil {
			return err
		}
	}
	return nil
}

func portSet(ports []Port) (hostport.Set, error) {
	var texts []string
	for _, p := range ports {
		texts = append(texts, p.String())
	}
	return hostport.Parse(strings.Join(texts, ","))
}

// readLimit counts what runs. SwarmKit counts a service's tasks of all versions, and
// our limit those of one revision: the two are one rule only where there is one
// version, and nothing else is compared.
func (f *filters) readLimit(c *Cluster) error {
	if f.service.MaxPerNode == 0 {
		return nil
	}
	limits, err := limit.Parse(fmt.Sprintf("node.name=%d", f.service.MaxPerNode))
	if err != nil {
		return err
	}
	for i := range c.Nodes {
		if c.Nodes[i].Older > 0 {
			return fmt.Errorf("%s has older tasks, which SwarmKit's limit counts and ours does not", c.Nodes[i].Name)
		}
	}
	f.counted = make(map[string]int64)
	f.counts = limit.Count(limits, func(yield func([]placement.Value, int64) bool) {
		for i := range c.Nodes {
			if !yield(nameOf(&c.Nodes[i]), int64(c.Nodes[i].Running)) {
				return
			}
		}
	})
	return nil
}

// nameOf is a node's value at the one limit there is.
func nameOf(n *Node) []placement.Value { return []placement.Value{{Text: n.Name}} }

// refusal is why a node does not take a task beside as many new ones.
func (f *filters) refusal(n *Node, placed int64) Refusal {
	on := int64(n.Running+n.Older) + placed
	switch {
	case n.State != Active:
		return notReady
	case !constraint.Hold(f.constraints, &constraint.Node{
		ID: n.Name, Name: n.Name, Hostname: n.Name, OS: n.Platform.OS, Arch: n.Platform.Arch, Labels: n.Labels,
	}):
		return noConstraint
	case !f.wish.Fits(platform.Platform{OS: n.Platform.OS, Arch: n.Platform.Arch}):
		return noPlatform
	case f.conflicts(n, on):
		return noPort
	case f.full(n, placed):
		return noRoom
	case (on+1)*f.service.CPU > n.CPU && f.service.CPU > 0, (on+1)*f.service.Memory > n.Memory && f.service.Memory > 0:
		return noResources
	}
	return ""
}

// conflicts says whether a port of the service is held by others, or by a task of its own.
func (f *filters) conflicts(n *Node, on int64) bool {
	held := f.taken[n.Name]
	if on > 0 {
		held = held.Union(f.ports)
	}
	for _, r := range f.ports {
		if held.Conflicts(hostport.Port{Address: r.Address, Protocol: r.Protocol, Number: r.First}) {
			return true
		}
	}
	return false
}

func (f *filters) full(n *Node, placed int64) bool {
	if f.counts == nil {
		return false
	}
	f.counts.Add(nameOf(n), placed-f.counted[n.Name])
	f.counted[n.Name] = placed
	return f.counts.Check(nameOf(n)) != limit.Room
}

// Differ says on which nodes our filters and the mirror of SwarmKit's differ, and for
// which reasons nodes were closed, or were so after some tasks.
func Differ(c *Cluster) (differ []string, closed map[Refusal]bool, err error) {
	f, err := newFilters(c)
	if err != nil {
		return nil, nil, err
	}
	closed = make(map[Refusal]bool)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		room, why := 0, Refusal("")
		for ; room < c.Service.Tasks; room++ {
			if why = f.refusal(n, int64(room)); why != "" {
				closed[why] = true
				break
			}
		}
		if mirror := min(c.Room(n), c.Service.Tasks); mirror != room {
			what := fmt.Sprintf("%s takes %d tasks by our filters and %d by the mirror of SwarmKit's", n.Name, room, mirror)
			if why != "" {
				what += fmt.Sprintf("; by ours it then %s", why)
			}
			differ = append(differ, what)
		}
	}
	return differ, closed, nil
}
