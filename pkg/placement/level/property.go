// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level

import (
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// A property is written in one of four forms. String writes the first two, and the third where KEY alone would be refused:
//
//	node.name                     the node's name
//	KEY                           the node label KEY
//	node.labels.KEY               the same
//	engine.labels.KEY             the same, for files that come from Docker
//
// All words but KEY are read in any case, as Docker reads them; KEY is not,
// because labels differ by case. All other names without a "/" that begin with "node." or
// "engine." are refused although they could be label keys: in Docker's language
// node.id or node.hostname mean something else, and a level over a label that no
// node has would look like a level that works.
const (
	nodePrefix        = "node."
	enginePrefix      = "engine."
	nodeLabelPrefix   = "node.labels."
	engineLabelPrefix = "engine.labels."
)

const (
	// maxDomain bounds a DNS subdomain: the prefix of a label key, a node's name.
	maxDomain = 253
	// maxName bounds a label's value, and the name in its key.
	maxName = 63
)

const (
	allowedProperty    = "use node.name or the key of a node label, such as topology.kubernetes.io/zone or node.labels.rack"
	allowedTopologyKey = "use the key of a node label, such as topology.kubernetes.io/zone or kubernetes.io/hostname"
	allowedKey         = "a label key is at most 63 letters, digits, '-', '_' or '.' with a letter or digit at both ends, " +
		"after an optional DNS name of at most 253 characters and '/'"
)

// ParseProperty reads node.name, KEY, node.labels.KEY or engine.labels.KEY. White space is
// refused. The error is a *syntax.Error.
func ParseProperty(s string) (Property, error) {
	p, err := parseProperty(s)
	if err != nil { // a nil *syntax.Error is not a nil error
		return Property{}, err
	}
	return p, nil
}

// ParseKey reads the key of a node label, as topology spread constraints, policies and arguments have it: none of Docker's
// spellings is one. The error is a *syntax.Error.
func ParseKey(s string) (Property, error) {
	switch {
	case s == "":
		return Property{}, syntax.Refuse("empty key", s, allowedTopologyKey)
	case reserved(s):
		return Property{}, syntax.Refuse("unknown key", s, allowedTopologyKey)
	case !isLabelKey(s):
		return Property{}, syntax.Refuse("invalid label key", s, allowedKey)
	}
	return Property{Label: s}, nil
}

func parseProperty(s string) (Property, *syntax.Error) {
	if s == "" {
		return Property{}, syntax.Refuse("empty property", s, allowedProperty)
	}
	if syntax.SameWord(s, NodeName) {
		return Property{}, nil
	}
	key, ok := syntax.CutPrefixFold(s, nodeLabelPrefix)
	if !ok {
		key, ok = syntax.CutPrefixFold(s, engineLabelPrefix)
	}
	if !ok {
		if reserved(s) {
			return Property{}, refuseReserved(s)
		}
		key = s
	}
	if key == "" {
		return Property{}, syntax.Refuse("no label key in property", s, allowedProperty)
	}
	if !isLabelKey(key) {
		return Property{}, syntax.Refuse("invalid label key", key, allowedKey)
	}
	return Property{Label: key}, nil
}

func refuseReserved(s string) *syntax.Error {
	allowed := allowedProperty
	if isLabelKey(s) {
		allowed += "; a node label of this very key is " + nodeLabelPrefix + syntax.Cut(s)
	}
	return syntax.Refuse("unknown property", s, allowed)
}

// String is the canonical spelling: ParseProperty reads it as the same property.
func (p Property) String() string {
	switch {
	case p.Label == "":
		return NodeName
	case reserved(p.Label):
		return nodeLabelPrefix + p.Label
	default:
		return p.Label
	}
}

// reserved says that a bare key would not be read as the label of that key. Keys
// with a "/" are ordinary (node.kubernetes.io/instance-type), except where they
// begin like Docker's spelling of a label.
func reserved(key string) bool {
	if hasPrefixFold(key, nodeLabelPrefix) || hasPrefixFold(key, engineLabelPrefix) {
		return true
	}
	return !strings.Contains(key, "/") && (hasPrefixFold(key, nodePrefix) || hasPrefixFold(key, enginePrefix))
}

// isLabelKey is Kubernetes' rule for label keys.
func isLabelKey(s string) bool {
	if domain, name, ok := strings.Cut(s, "/"); ok {
		return isDomain(domain) && isName(name)
	}
	return isName(s)
}

// isLabelValue is Kubernetes' rule for label values.
func isLabelValue(s string) bool { return s == "" || isName(s) }

func isName(s string) bool {
	if len(s) == 0 || len(s) > maxName || !isAlnum(s[0]) || !isAlnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlnum(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// isDomain is Kubernetes' rule for DNS subdomains, which bounds the whole but not
// the parts.
func isDomain(s string) bool {
	if len(s) > maxDomain {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' {
			return false
		}
		for i := range len(part) {
			if c := part[i]; c != '-' && (!isAlnum(c) || ('A' <= c && c <= 'Z')) {
				return false
			}
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && syntax.SameWord(s[:len(prefix)], prefix)
}
