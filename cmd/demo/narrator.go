// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// narrator is the only one who writes to the terminal, a whole line at a time:
// progress of child processes comes in between from elsewhere.
type narrator struct {
	start time.Time

	mu    sync.Mutex // guards out, muted and rest
	out   io.Writer
	muted bool
	// rest is the beginning of a child's line whose end has not come yet.
	rest []byte
}

// line tells what is going on, with the seconds since the start.
func (n *narrator) line(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(n.out, "%5.1fs  %s\n", time.Since(n.start).Seconds(), fmt.Sprintf(format, args...))
}

// act opens a part of the play.
func (n *narrator) act(format string, args ...any) {
	title := fmt.Sprintf(format, args...)
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprintf(n.out, "\n── %s %s\n", title, strings.Repeat("─", max(0, width-4-len([]rune(title)))))
}

// text writes a drawing.
func (n *narrator) text(drawing string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, _ = io.WriteString(n.out, drawing)
}

// mute ends the children's progress: the verdict is to be the last thing said.
func (n *narrator) mute() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.muted = true
}

// Write takes a child's progress and shows its whole lines, indented.
func (n *narrator) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.muted {
		return len(p), nil
	}
	n.rest = append(n.rest, p...)
	for {
		i := bytes.IndexByte(n.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		fmt.Fprintf(n.out, "        %s\n", n.rest[:i])
		n.rest = n.rest[i+1:]
	}
}
