// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// optionForm has four groups: the name, the two counts and the state.
const optionForm = `([^\s=]+)=([0-9]{1,10})(?:/([0-9]{1,10}))?(?: \(([^()]+)\))?`

// stepForm has the level, the chosen option, the relation and the next option.
var stepForm = regexp.MustCompile(`^(\S+) ` + optionForm + `(?: (before|tied with|instead of) ` + optionForm + `)?$`)

// Parse reads what String has written, and nothing else. An error quotes the part that cannot be read.
func Parse(text string) (Decision, error) {
	if len(text) > Max {
		return Decision{}, fmt.Errorf("a decision has at most %d bytes, and this one %d", Max, len(text))
	}
	path, steps, some := strings.Cut(text, afterPath)
	d := Decision{Fast: path == fast}
	for step := range strings.SplitSeq(steps, betweenSteps) {
		switch {
		case !some:
		case step == cut:
			d.Cut = true
		default:
			s, err := parseStep(step)
			if err != nil {
				return Decision{}, err
			}
			d.Steps = append(d.Steps, s)
		}
	}
	if d.String() != text {
		return Decision{}, fmt.Errorf("%q is no decision: it has the form fast: zone a=3 before b=4; node n7=0 tied with n9=0", text)
	}
	return d, nil
}

func parseStep(text string) (s Step, err error) {
	m := stepForm.FindStringSubmatch(text)
	if m == nil {
		return s, fmt.Errorf("%q is no step of a decision: it has the form zone a=3 before b=4", text)
	}
	s.Level, s.Relation = m[1], Relation(m[6])
	if s.Chosen, err = option(m[2:6]); err == nil && s.Relation != "" {
		s.Next, err = option(m[7:])
	}
	return s, err
}

// option is that of the groups of optionForm.
func option(m []string) (Option, error) {
	revision, err := strconv.ParseInt(m[1], 10, 32)
	workload := revision
	if err == nil && m[2] != "" {
		workload, err = strconv.ParseInt(m[2], 10, 32)
	}
	if err != nil {
		return Option{}, fmt.Errorf("%s has more pods than a cluster can have: %w", m[0], err)
	}
	return Option{m[0], int32(revision), int32(workload), m[3]}, nil
}
