// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// interrupted is the exit status of a demo that Ctrl-C ended.
const interrupted = 130

// run shows everything, records it if that is asked for, and returns the exit status. Whatever it starts has ended
// when it returns, and the verdict is the last line.
func run(ctx context.Context, out io.Writer, keep bool, record string) int {
	start := time.Now()
	say := newNarrator(out, start)
	p := &play{say: say}
	err := p.run(ctx, keep)
	took := time.Since(start)
	if ctx.Err() != nil && !p.finished {
		say.text("\ninterrupted: ending the scheduler and the cluster\n")
	}
	say.mute()
	if p.stage != nil {
		p.keepLogs = p.cluster != nil && (err != nil || len(p.failures) > 0) && ctx.Err() == nil
		err = errors.Join(err, p.strike())
		if p.keepLogs {
			say.text(fmt.Sprintf("\nlogs are in %s\n", p.dir))
		}
	}
	switch {
	case p.finished && err == nil:
		status := p.verdict(took)
		if record != "" && status == 0 {
			if err := say.recording.write(record); err != nil {
				fmt.Fprintln(out, err)
				return 1
			}
		}
		return status
	case ctx.Err() != nil:
		return interrupted
	}
	say.text(fmt.Sprintf("\nFAIL: after %d spreads: %v\n", p.judged, err))
	return 1
}

// run builds the stage and plays the acts on it.
func (p *play) run(ctx context.Context, keep bool) (err error) {
	if p.stage, err = build(ctx, p.say); err != nil {
		return err
	}
	if err := p.acts(ctx); err != nil {
		return err
	}
	p.finished = true
	if keep {
		p.say.text("\n")
		p.say.line("the cluster stays up until Ctrl-C: export KUBECONFIG=%s", p.cluster.Kubeconfig)
		select {
		case <-ctx.Done():
		case <-p.scheduler.Done():
		case <-p.cluster.Done():
		}
		return p.ended()
	}
	return nil
}
