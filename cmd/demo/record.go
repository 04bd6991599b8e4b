// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"time"
)

// recording is what was told, and when: for an animated picture of a terminal.
type recording []told

// told is a line, at a time since the first one.
type told struct {
	at   time.Duration
	line string
}

// add adds what is told at a time, which may be several lines.
func (r *recording) add(at time.Duration, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		*r = append(*r, told{at, line})
	}
}

// from leaves what was told from the first line on that holds a word, with the times counted from there. What stood before it on the screen is
// there from the beginning.
func (r recording) from(word string) recording {
	for i := range r {
		if !strings.Contains(r[i].line, word) {
			continue
		}
		var rest recording
		for _, t := range r[max(0, i+1-shownLines):] {
			rest = append(rest, told{max(t.at-r[i].at, 0), t.line})
		}
		return rest
	}
	return nil
}

// Sizes of the picture, in pixels and in lines.
const (
	lineHeight, letterWidth = 17, 7.83
	shownLines              = 30
	edge                    = 12
	// lasts is for how long the picture moves, and rests for how long its end is seen before it begins anew.
	lasts, rests = 20 * time.Second, 5 * time.Second
)

// terminalStyle is for light and for dark. Who does not want things to move sees the end.
const terminalStyle = `
.all { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #1f2328; }
.back { fill: #f6f8fa; stroke: #d1d9e0; } .act { font-weight: bold; } .good { fill: #1a7f37; } .bad { fill: #cf222e; } .bar { fill: #0969da; }
@media (prefers-color-scheme: dark) { .all { fill: #e6edf3; } .back { fill: #0d1117; stroke: #3d444d; } .good { fill: #3fb950; } .bad { fill: #ff7b72; } .bar { fill: #4493f8; } }
@media (prefers-reduced-motion: reduce) { .told { animation: none; } }
`

// svg draws a recording as a terminal in which the lines come as they came, stretched to one length. Only the group of all lines moves, so the
// picture is small.
func (r recording) svg() string {
	const width, height = int(letterWidth*100) + 2*edge, shownLines*lineHeight + 2*edge
	last := max(r[len(r)-1].at, time.Millisecond)
	offset := func(lines int) int { return (shownLines - lines) * lineHeight }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="make demo in a terminal: a zone is cordoned and comes back, and a rolling update replaces every pod">`+"\n", width, height)
	fmt.Fprintf(&b, "<style>%s.told { transform: translateY(%dpx); animation: told %ds step-end infinite; }\n@keyframes told {\n", terminalStyle, offset(len(r)), int((lasts + rests).Seconds()))
	for i := range r {
		if i+1 < len(r) && r[i+1].at == r[i].at {
			continue // they came at once
		}
		at := 100 * float64(r[i].at) / float64(last) * float64(lasts) / float64(lasts+rests)
		fmt.Fprintf(&b, "%.2f%% { transform: translateY(%dpx); }\n", at, offset(i+1))
	}
	fmt.Fprintf(&b, "}</style>\n<clipPath id=\"screen\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n", edge, edge, width-2*edge, height-2*edge)
	fmt.Fprintf(&b, `<rect class="back" x="0.5" y="0.5" width="%d" height="%d" rx="6"/><g clip-path="url(#screen)"><g class="all told">`+"\n", width-1, height-1)
	for i := range r {
		if r[i].line != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", edge, edge+i*lineHeight+13, coloured(r[i].line))
		}
	}
	b.WriteString("</g></g>\n</svg>\n")
	return b.String()
}

// colours are the classes of what is told.
var colours = []struct {
	is    *regexp.Regexp
	class string
}{
	{regexp.MustCompile(`^── .*$`), "act"},
	{regexp.MustCompile(`as even as it can be$|^PASS`), "good"},
	{regexp.MustCompile(`NOT EVEN$|^FAIL`), "bad"},
	{regexp.MustCompile(`█+`), "bar"},
}

// coloured is a line as XML, with its colours.
func coloured(line string) string {
	line = html.EscapeString(line)
	for _, c := range colours {
		line = c.is.ReplaceAllString(line, `<tspan class="`+c.class+`">$0</tspan>`)
	}
	return line
}

// firstRecorded begins what is recorded: before it pods are only made.
const firstRecorded = "is cordoned"

// write writes the picture.
func (r recording) write(file string) error {
	some := r.from(firstRecorded)
	if len(some) == 0 {
		return fmt.Errorf("recording into %s: nothing was told", file)
	}
	return os.WriteFile(file, []byte(some.svg()), 0o644)
}
