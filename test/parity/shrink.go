// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import "slices"

// Shrink returns the smallest cluster it finds that still fails, beginning with one
// that does. It takes things away one by one as long as that helps.
func Shrink(c *Cluster, fails func(*Cluster) bool) *Cluster {
	for {
		i := slices.IndexFunc(smaller(c), fails)
		if i < 0 {
			return c
		}
		c = smaller(c)[i]
	}
}

// smaller returns the clusters that are one step simpler, the largest steps first.
func smaller(c *Cluster) []*Cluster {
	var all []*Cluster
	with := func(change func(*Cluster)) {
		s := &Cluster{Service: c.Service, Nodes: slices.Clone(c.Nodes)}
		change(s)
		all = append(all, s)
	}
	for i := range c.Nodes {
		with(func(s *Cluster) { s.Nodes = slices.Delete(s.Nodes, i, i+1) })
	}
	for i := range c.Service.Labels {
		with(func(s *Cluster) { s.Service.Labels = slices.Delete(slices.Clone(s.Service.Labels), i, i+1) })
	}
	for i := range c.Service.Constraints {
		with(func(s *Cluster) { s.Service.Constraints = slices.Delete(slices.Clone(s.Service.Constraints), i, i+1) })
	}
	less := func(field func(*Cluster) *int) {
		if v := *field(c); v > 0 {
			for _, to := range slices.Compact([]int{0, v / 2, v - 1}) {
				with(func(s *Cluster) { *field(s) = to })
			}
		}
	}
	less(func(s *Cluster) *int { return &s.Service.Tasks })
	less(func(s *Cluster) *int { return &s.Service.MaxPerNode })
	for _, field := range []func(*Cluster) *int64{
		func(s *Cluster) *int64 { return &s.Service.CPU }, func(s *Cluster) *int64 { return &s.Service.Memory },
	} {
		if *field(c) > 0 {
			with(func(s *Cluster) { *field(s) = 0 })
		}
	}
	for i := range c.Service.Ports {
		with(func(s *Cluster) { s.Service.Ports = slices.Delete(slices.Clone(s.Service.Ports), i, i+1) })
	}
	for i := range c.Service.Platforms {
		with(func(s *Cluster) { s.Service.Platforms = slices.Delete(slices.Clone(s.Service.Platforms), i, i+1) })
	}
	if c.Service.Unversioned {
		with(func(s *Cluster) { s.Service.Unversioned = false })
	}
	for i := range c.Nodes {
		if len(c.Nodes[i].Taken) > 0 {
			with(func(s *Cluster) { s.Nodes[i].Taken = nil })
		}
		less(func(s *Cluster) *int { return &s.Nodes[i].Running })
		less(func(s *Cluster) *int { return &s.Nodes[i].Older })
		less(func(s *Cluster) *int { return &s.Nodes[i].Others })
		less(func(s *Cluster) *int { return &s.Nodes[i].Failures })
	}
	return all
}
