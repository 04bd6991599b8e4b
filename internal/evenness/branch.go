// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package evenness

import "fmt"

// Branch is the nodes of one value at one level, or one node. Its counts are the
// sums of its children's, and its children are in byte order of their names.
type Branch struct {
	// Name is the value, the node's name, "(none)" for nodes without the label,
	// or "others" for the branch that holds the values without a weight.
	Name               string
	Count, Fixed, Room int
	Weight             int64
	Children           []*Branch
	packs              bool
	over               string
	parent             *Branch
	weighted           bool
}

// Grow makes a tree of the nodes, one level below the other, with the nodes as the last.
func Grow(levels []Level, nodes []Node) *Branch {
	root := &Branch{Name: "", Weight: 1}
	root.grow(levels, 0, nodes)
	return root
}

// grow hangs the nodes below the branch, from the given level down.
func (b *Branch) grow(levels []Level, depth int, nodes []Node) {
	for _, n := range nodes {
		b.Count += n.Count
		b.Fixed += n.Fixed
		b.Room = min(b.Room+n.Room, Unlimited)
	}
	if depth == len(levels) {
		b.over = "node"
		for _, n := range sortedNodes(nodes) {
			b.add(&Branch{Name: n.Name, Count: n.Count, Fixed: n.Fixed, Room: n.Room, Weight: 1})
		}
		return
	}
	level := levels[depth]
	b.over, b.packs = level.Name, level.Pack
	byValue := map[string][]Node{}
	others := map[string][]Node{}
	_, shared := level.Weights[Others]
	for _, n := range nodes {
		value := n.Values[depth]
		if _, listed := level.Weights[value]; shared && !listed {
			others[value] = append(others[value], n)
			continue
		}
		byValue[value] = append(byValue[value], n)
	}
	for _, value := range sortedKeys(byValue) {
		child := b.add(&Branch{Name: display(value), Weight: max(level.Weights[value], 1), weighted: len(level.Weights) > 0})
		child.grow(levels, depth+1, byValue[value])
	}
	if len(others) > 0 {
		child := b.add(&Branch{Name: "others", Weight: level.Weights[Others], weighted: true})
		child.growOthers(levels, depth, others)
	}
}

// growOthers spreads evenly inside the branch of the values that share one weight.
func (b *Branch) growOthers(levels []Level, depth int, others map[string][]Node) {
	b.over = levels[depth].Name
	for _, value := range sortedKeys(others) {
		child := b.add(&Branch{Name: display(value), Weight: 1})
		child.grow(levels, depth+1, others[value])
		b.Count += child.Count
		b.Fixed += child.Fixed
		b.Room = min(b.Room+child.Room, Unlimited)
	}
}

func (b *Branch) add(child *Branch) *Branch {
	child.parent = b
	b.Children = append(b.Children, child)
	return child
}

// where names the place of a finding: the level, and the branch it was found in.
func (b *Branch) where() string {
	verb := "spread"
	if b.packs {
		verb = "pack"
	}
	path := ""
	for p := b; p.parent != nil; p = p.parent {
		if path == "" {
			path = p.Name
		} else {
			path = p.Name + "/" + path
		}
	}
	if path == "" {
		return fmt.Sprintf("%s over %s", verb, b.over)
	}
	return fmt.Sprintf("%s over %s in %s", verb, b.over, path)
}

func (b *Branch) share() string {
	if !b.weighted {
		return ""
	}
	return fmt.Sprintf(" (weight %d)", b.Weight)
}

func walk(b *Branch, visit func(*Branch)) {
	visit(b)
	for _, c := range b.Children {
		walk(c, visit)
	}
}

func display(value string) string {
	if value == "" {
		return "(none)"
	}
	return value
}
