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

	"github.com/espalier-scheduler/espalier/internal/progress"
)

// narrator is the only one who writes to the terminal, a whole line at a time:
// progress of child processes comes in between from elsewhere.
type narrator struct {
	start time.Time
	bar   *progress.Bar

	mu    sync.Mutex // guards what is below
	muted bool
	// rest is the beginning of a child's line whose end has not come yet.
	rest []byte
	// recording has all that was told, but for progress.
	recording recording
}

func newNarrator(out io.Writer, start time.Time) *narrator {
	return &narrator{start: start, bar: progress.New(out)}
}

// line tells what is going on, with the seconds since the start.
func (n *narrator) line(format string, args ...any) {
	n.tell(fmt.Sprintf("%5.1fs  %s", time.Since(n.start).Seconds(), fmt.Sprintf(format, args...)))
}

// act opens a part of the play.
func (n *narrator) act(format string, args ...any) {
	title := fmt.Sprintf(format, args...)
	n.tell(fmt.Sprintf("\n── %s %s", title, strings.Repeat("─", max(0, width-4-len([]rune(title))))))
}

// text writes a drawing.
func (n *narrator) text(drawing string) { n.tell(strings.TrimSuffix(drawing, "\n")) }

func (n *narrator) tell(text string) {
	n.bar.Line(text)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.recording.add(time.Since(n.start), text)
}

// progress shows how far is what is waited for.
func (n *narrator) progress(done, all int, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.muted {
		n.bar.Show(done, all, what)
	}
}

// mute ends all progress: the verdict is to be the last thing said.
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
		n.bar.Line("        " + string(n.rest[:i]))
		n.rest = n.rest[i+1:]
	}
}
