// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package contention

import (
	"container/heap"
	"time"
)

// event is what happens at a time. Of several at one time that which was said first comes first.
type event struct {
	at      time.Duration
	serial  int
	happens func()
}

// events are those that are to come, a heap.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].serial < e[j].serial
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any) {
	if one, ok := x.(event); ok {
		*e = append(*e, one)
	}
}

func (e *events) Pop() any {
	last := len(*e) - 1
	one := (*e)[last]
	*e = (*e)[:last]
	return one
}

// at has something happen at a time, and after when some has passed.
func (p *play) at(when time.Duration, happens func()) {
	p.serial++
	heap.Push(&p.events, event{when, p.serial, happens})
}

func (p *play) after(passes time.Duration, happens func()) { p.at(p.now+passes, happens) }
