// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"

	"github.com/espalier-scheduler/espalier/internal/progress"
)

// printer is where text for people is written.
type printer struct {
	io.Writer

	// colours says that it shows them.
	colours bool
	// wide says that everything is wanted, however long.
	wide bool
}

// mark is what is thought of something. It is a colour where there are colours, and nothing else: the words say it too.
type mark string

const (
	plainly mark = ""
	good    mark = "32" // green
	odd     mark = "33" // yellow
	bad     mark = "31" // red
)

// mark gives a text the colour of what is thought of it.
func (p *printer) mark(m mark, text string) string {
	if !p.colours || m == plainly || text == "" {
		return text
	}
	return "\x1b[" + string(m) + "m" + text + "\x1b[0m"
}

// drawing is text that is written to a terminal later, or not at all.
type drawing struct {
	bytes.Buffer

	colours bool
}

// hasColours reports whether colours can be seen: on a terminal that has some, unless NO_COLOR is set (no-color.org).
func hasColours(out io.Writer) bool {
	if d, is := out.(*drawing); is {
		return d.colours
	}
	return progress.IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
