// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level

import (
	"strings"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// String is the canonical text of a level: its weights in the order of their
// values or its share, then nodesWithoutKey where it is not the default. Parse reads the text of a
// valid level as the same level.
func (l Level) String() string {
	var b strings.Builder
	b.WriteString(string(l.Strategy) + "=" + l.Property.String())
	for _, w := range l.Weights {
		b.WriteString(optionSeparator + w.String())
	}
	if l.Share != "" {
		b.WriteString(optionSeparator + shareOption + "=" + string(l.Share))
	}
	if l.NodesWithoutKey != OwnDomain {
		b.WriteString(optionSeparator + withoutKeyOption + "=" + string(l.NodesWithoutKey))
	}
	return b.String()
}

// Format is the canonical text of levels: Parse(Format(x)) is x for any valid x
// that has levels. The text of no levels is empty.
func Format(levels []Level) string {
	texts := make([]string, len(levels))
	for i, l := range levels {
		texts[i] = l.String()
	}
	return strings.Join(texts, syntax.Separator)
}
