// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/espalier-scheduler/espalier/internal/child"
)

// Process is a child that somebody waits for from the moment it starts: Done is
// closed as soon as it has ended, by whatever cause.
type Process struct {
	// Name is what messages call it.
	Name string
	// Log is the path of the file that takes its standard error, and its
	// standard output where nobody else reads it.
	Log string

	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
	err  error // set before done is closed
	// told is the last signal by which we had it end, 0 for none.
	told atomic.Int32
}

// Command is what to run.
type Command struct {
	Name string
	Path string
	Args []string
	// Dir takes the log, NAME.log, which is appended to.
	Dir string
	// Stdin and Stdout are the process's, nil for none and the log.
	Stdin  io.Reader
	Stdout io.Writer
	// Stderr gets a copy of what goes to the log, nil for no copy.
	Stderr io.Writer
}

// Start starts the process in a process group of its own: a Ctrl-C at the
// terminal reaches only us, and we end the children in order.
func Start(c Command) (*Process, error) {
	path := filepath.Join(c.Dir, c.Name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	p := &Process{Name: c.Name, Log: path, cmd: exec.Command(c.Path, c.Args...), log: log, done: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = c.Stdin, c.Stdout, log
	if c.Stdout == nil {
		p.cmd.Stdout = log
	}
	if c.Stderr != nil {
		p.cmd.Stderr = io.MultiWriter(log, c.Stderr)
	}
	// A grandchild that inherited the pipe must not keep Wait from returning.
	p.cmd.WaitDelay = 2 * time.Second
	p.cmd.SysProcAttr = childAttributes()
	if err := child.Start(p.cmd, p.ended); err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	return p, nil
}

func (p *Process) ended(err error) {
	_ = p.log.Close()
	p.err = err
	close(p.done)
}

// Pid is the process's id, for who measures it.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err tells how the process ended, with the end of its log. It blocks until it has.
func (p *Process) Err() error {
	<-p.done
	how := "it ended with exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended by itself: %s; the end of %s:\n%s", p.Name, how, p.Log, p.Tail(12))
}

// ExitCode is the status the process ended with, -1 if a signal ended it. It blocks until it has.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Kill ends the process at once, as the kernel would, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.tell(syscall.SIGKILL)
	<-p.done
}

// Pause stops the process where it is, and Resume lets it go on: to itself no time has passed.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Terminate asks the process to end, as a kubelet does, and does not wait.
func (p *Process) Terminate() error { return p.tell(syscall.SIGTERM) }

// tell has the process end by a signal. One that comes too late does not count: the process
// has then ended by itself.
func (p *Process) tell(s syscall.Signal) error {
	err := p.signal(s)
	if err == nil {
		p.told.Store(int32(s))
	}
	return err
}

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("sending %s the signal %q: %w", p.Name, s, err)
	}
	return nil
}

// Unasked is Err if the process has ended and nobody had it end, and nil otherwise: a crash
// that nothing waits for must not pass for an end in order.
func (p *Process) Unasked() error {
	select {
	case <-p.done:
		if p.told.Load() == 0 {
			return p.Err()
		}
	default:
	}
	return nil
}

// Stop asks the process to end, as Ctrl-C does, and waits. A process that is not
// gone in time is killed, and that is an error: it should have listened. So is one that
// has ended unasked. How it ends is not looked at; StopCleanly does.
func (p *Process) Stop(timeout time.Duration) error {
	if err := p.tell(syscall.SIGINT); errors.Is(err, os.ErrProcessDone) {
		<-p.done
		return p.Unasked()
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(timeout):
		p.Kill()
		return fmt.Errorf("%s did not end within %s of an interrupt and was killed; its log is %s", p.Name, timeout, p.Log)
	}
}

// StopCleanly is Stop for a program that ends with status 0 when it is asked to, as ours
// do: with any other, as after a panic on its way out, it is an error. One that our signal
// itself ended has none: it was killed before, or had not come to listen yet.
func (p *Process) StopCleanly(timeout time.Duration) error {
	if err := p.Stop(timeout); err != nil {
		return err
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	bySignal := ok && status.Signaled() && int32(status.Signal()) == p.told.Load()
	if !bySignal && p.ExitCode() != 0 {
		return fmt.Errorf("%s was asked to end and did not end well: %w; the end of %s:\n%s", p.Name, p.err, p.Log, p.Tail(12))
	}
	return nil
}

// Tail is the last lines of the log.
func (p *Process) Tail(lines int) string {
	content, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimRight(content, "\n")), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
