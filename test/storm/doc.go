// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storm has everything happen at once: a scheduler in this process, with all
// our plugins and put together by upstream.Adapt as the one that ships, schedules while nodes,
// pods, workloads, policies and events change from many sides. It is one of several that are active
// at once, whose parts change. Bindings are refused, end in conflicts, or are made without an answer.
// It is for the race detector, and for what only shows when informers, bindings and timers meet.
//
//	actors ──► api server ──► informers ──► scheduler ──► bindings ──┐
//	              ▲                                                  │
//	              └──────────────────────────────────────────────────┘
//
// What is asked at the end is what must hold whatever the order of things was: each pod
// that fits somewhere is placed, and once; what the scheduler believes is what a second
// one that starts now would; and nothing is left running. The seed settles what the actors
// do, not how it interleaves: a run that fails may not fail again.
//
// And each wrapper of upstream.Adapt must have shown that it is there: see adapted_test.go. A storm
// lasts longer than it is asked to, until all of them have.
//
// On the same API server, in calm clusters, what a simulation of kubectl espalier says of pods that wait is held against what the
// scheduler does with them.
//
// There as well, one pod at a time and by the clock of a bubble, TestPlacements writes down what the scheduler makes of pods of every kind. It judges changes
// of structure, which are to change nothing of that:
//
//	go test ./test/storm -run Placements -update
package storm
