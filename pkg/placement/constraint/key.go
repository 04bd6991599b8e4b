// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/platform"
	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// engineLabelPrefix is Docker's spelling for labels of the engine. A node of
// Kubernetes has one set of labels, so they are labels of the node.
const engineLabelPrefix = "engine.labels."

const (
	allowedKey = "use node.id, node.name, node.hostname, node.ip, node.role, node.platform.os, node.platform.arch, " +
		"node.labels.KEY or engine.labels.KEY"
	allowedRole = "use manager or worker"
	allowedIP   = "use an address such as 10.1.2.3 or 2001:db8::2, or a range such as 10.1.0.0/16"
)

// setKey reads a key. One that is the key of a label and nothing else is refused:
// most often a prefix was forgotten, and "!=" over a label that no node has would hold everywhere.
func (c *Constraint) setKey(text string) *syntax.Error {
	for _, k := range []Key{ID, Name, Hostname, IP, Role, OS, Arch} {
		if syntax.SameWord(text, string(k)) {
			c.Key = k
			return nil
		}
	}
	label, ok := syntax.CutPrefixFold(text, string(Label))
	if !ok {
		label, ok = syntax.CutPrefixFold(text, engineLabelPrefix)
	}
	if !ok {
		allowed := allowedKey
		if _, err := level.ParseProperty(string(Label) + text); err == nil {
			allowed += "; a node label of this very key is " + string(Label) + syntax.Cut(text)
		}
		return syntax.Refuse("unknown key", text, allowed)
	}
	if label == "" {
		return syntax.Refuse("no label key in", text, allowedKey)
	}
	// The rule for a label's key is that of levels, which name the same labels.
	_, err := level.ParseProperty(string(Label) + label)
	if refused, ok := errors.AsType[*syntax.Error](err); ok {
		return syntax.Refuse(refused.Problem, label, refused.Allowed)
	}
	c.Key, c.Label = Label, label
	return nil
}

// readValue gives the value the meaning and the canonical form that its key wants.
func (c *Constraint) readValue() *syntax.Error {
	switch c.Key {
	case IP:
		r, ok := parseRange(c.Value)
		if !ok {
			return syntax.Refuse("invalid address", c.Value, allowedIP)
		}
		c.Range, c.Value = r, r.String()
		if r.IsSingleIP() {
			c.Value = r.Addr().String()
		}
	case Role:
		c.Value = strings.ToLower(c.Value)
		if c.Value != Manager && c.Value != Worker {
			return syntax.Refuse("unknown role", c.Value, allowedRole)
		}
	case Arch:
		c.Value = platform.Architecture(strings.ToLower(c.Value))
	}
	return nil
}

// parseRange reads an address or a range. The bits of a range that are not
// its network's are dropped. An address of version 4 in the clothes of version 6 is one of version 4.
func parseRange(s string) (netip.Prefix, bool) {
	const mapped = 96 // the bits that put an address of version 4 into one of version 6
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return netip.Prefix{}, false
	case p.Addr().Is4In6() && p.Bits() >= mapped:
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped)
	}
	return p.Masked(), true
}
