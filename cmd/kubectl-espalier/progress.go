// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// quiet is how long something may take without a word.
const quiet = 2 * time.Second

// progress shows how far something is that takes more than a while: on a terminal by a bar in one line, otherwise by a line now and then.
type progress struct {
	out      io.Writer
	terminal bool
	since    time.Time
	last     time.Time
	drawn    bool
}

func newProgress(out io.Writer) *progress {
	f, is := out.(*os.File)
	return &progress{out: out, terminal: is && term.IsTerminal(int(f.Fd())), since: time.Now()}
}

// show says that so many of all are done.
func (p *progress) show(done, all int, what string) {
	now := time.Now()
	pause := quiet
	if p.terminal {
		pause = 100 * time.Millisecond
	}
	if now.Sub(p.since) < quiet || now.Sub(p.last) < pause {
		return
	}
	p.last = now
	if !p.terminal {
		fmt.Fprintf(p.out, "%d of %d: %s\n", done, all, what)
		return
	}
	const width = 30
	full := width * done / max(all, 1)
	fmt.Fprintf(p.out, "\r\x1b[K[%s%s] %d of %d: %s", strings.Repeat("=", full), strings.Repeat(" ", width-full), done, all, what)
	p.drawn = true
}

// end takes the bar away.
func (p *progress) end() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
