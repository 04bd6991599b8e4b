// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

const (
	allowedExpression = "use KEY == VALUE or KEY != VALUE"
	allowedValue      = "a value is letters, digits, blanks and : - _ . * ( ) ? + [ ] \\ ^ $ | /, none of which stands for anything else"
)

var entries = syntax.Entries{Noun: "constraint", Max: MaxConstraints, Allowed: allowedExpression}

// Parse reads constraints, as in
//
//	node.role == worker, node.labels.disk == ssd, node.ip != 10.1.0.0/16
//
// They are separated by commas, which no value of Docker's language can hold. White
// space around keys and values is dropped; keys are read in any case, but for the
// key of a label. The constraints come back in canonical form, at least one of them.
//
// The error is a *syntax.Error that names the first thing that is wrong. SwarmKit
// switches the whole filter off instead where one expression has no form, and
// refuses every node without a word where one has an unknown key: the first runs a
// task where it was forbidden, the second lets it wait and nobody knows for what.
func Parse(s string) ([]Constraint, error) {
	return syntax.ParseList(s, entries, parseOne)
}

func parseOne(_ []Constraint, text string) (Constraint, *syntax.Error) {
	// As in Docker, "==" anywhere comes before "!=" anywhere.
	operator := Equal
	key, value, ok := strings.Cut(text, string(Equal))
	if !ok {
		operator = NotEqual
		key, value, ok = strings.Cut(text, string(NotEqual))
	}
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case !ok:
		return Constraint{}, syntax.Refuse("no operator in", text, allowedExpression)
	case key == "":
		return Constraint{}, syntax.Refuse("no key before", text, allowedExpression)
	case value == "":
		return Constraint{}, syntax.Refuse("no value after", key, allowedExpression)
	case !isValue(value):
		return Constraint{}, syntax.Refuse("invalid value", value, allowedValue)
	}
	c := Constraint{Operator: operator, Value: value}
	if err := c.setKey(key); err != nil {
		return Constraint{}, err
	}
	if err := c.readValue(); err != nil {
		return Constraint{}, err
	}
	return c, nil
}

// isValue is Docker's rule, with one white space less: a value does not go over a
// line's end, where a comma was forgotten.
func isValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(":-_ \t.*()?+[]\\^$|/", c) < 0 {
			return false
		}
	}
	return true
}

// String is the canonical text of a constraint: Parse reads it as the same.
func (c *Constraint) String() string {
	return string(c.Key) + c.Label + " " + string(c.Operator) + " " + c.Value
}

// Format is the canonical text of constraints: Parse(Format(x)) is x for whatever
// Parse returned. The text of none is empty.
func Format(constraints []Constraint) string {
	texts := make([]string, len(constraints))
	for i := range constraints {
		texts[i] = constraints[i].String()
	}
	return strings.Join(texts, syntax.Separator+" ")
}
