// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress shows how far something is that takes more than a while: on a terminal by a bar with a total, in a log by a line now
// and then.
//
//	[============                  ] 1400 of 2650: nodes Ready
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// quiet is how long something may take without a word.
	quiet = 2 * time.Second
	// redraw is how often a bar is drawn anew, and apart how far apart the lines of a log are.
	redraw, apart = 100 * time.Millisecond, 10 * time.Second
)

// Bar shows how far one thing after the other is. It may be used from several goroutines.
type Bar struct {
	out      io.Writer
	terminal bool
	now      func() time.Time

	mu    sync.Mutex // guards what is below
	since time.Time
	last  time.Time
	drawn bool
}

// New returns a bar that has not been drawn yet. The time since then counts: who has waited for two seconds wants to know.
func New(out io.Writer) *Bar { return newBar(out, IsTerminal(out), time.Now) }

func newBar(out io.Writer, terminal bool, now func() time.Time) *Bar {
	return &Bar{out: out, terminal: terminal, now: now, since: now()}
}

// Show says that so many of all are done of something. All is 0 if nobody knows how many there are.
func (b *Bar) Show(done, all int, what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	pause := apart
	if b.terminal {
		pause = redraw
	}
	if now.Sub(b.since) < quiet || now.Sub(b.last) < pause {
		return
	}
	b.last = now
	if !b.terminal {
		fmt.Fprintln(b.out, text(done, all, what))
		return
	}
	const width = 30
	full := 0
	if all > 0 {
		full = width * min(done, all) / all
	}
	fmt.Fprintf(b.out, "%s[%s%s] %s", anew, strings.Repeat("=", full), strings.Repeat(" ", width-full), text(done, all, what))
	b.drawn = true
}

func text(done, all int, what string) string {
	if all == 0 {
		return what
	}
	return fmt.Sprintf("%d of %d: %s", done, all, what)
}

// anew begins a line of a terminal anew.
const anew = "\r\x1b[K"

// Line writes a line where the bar is. The bar is drawn again when there is more to show.
func (b *Bar) Line(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	fmt.Fprintln(b.out, text)
	b.last = b.now() // a log has just said something
}

// End takes the bar away.
func (b *Bar) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
}

func (b *Bar) end() {
	if b.drawn {
		fmt.Fprint(b.out, anew)
		b.drawn = false
	}
}

// IsTerminal reports whether somebody sees what is written.
func IsTerminal(out io.Writer) bool {
	f, is := out.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}
