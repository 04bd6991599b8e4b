// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"fmt"
	"strings"
	"time"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// Window is some hours of each day, in UTC. One that ends before it begins goes over midnight.
type Window struct {
	// From and To are minutes of the day. To is not in it.
	From, To int
}

// ParseWindow reads a window as HH:MM-HH:MM.
func ParseWindow(text string) (Window, error) {
	from, to, found := strings.Cut(text, "-")
	f, ferr := time.Parse("15:04", from)
	t, terr := time.Parse("15:04", to)
	if !found || ferr != nil || terr != nil || f.Equal(t) {
		return Window{}, fmt.Errorf("%q is no window: use HH:MM-HH:MM in UTC, such as 22:00-06:00", syntax.Cut(text))
	}
	return Window{minutes(f), minutes(t)}, nil
}

func minutes(t time.Time) int { return 60*t.Hour() + t.Minute() }

// has reports whether a moment is in the window.
func (w Window) has(now time.Time) bool {
	m := minutes(now.UTC())
	if w.From < w.To {
		return w.From <= m && m < w.To
	}
	return w.From <= m || m < w.To
}

// open reports whether a moment is in one of the windows, or there are none.
func open(windows []Window, now time.Time) bool {
	for _, w := range windows {
		if w.has(now) {
			return true
		}
	}
	return len(windows) == 0
}
