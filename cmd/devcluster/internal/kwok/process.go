// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/espalier-scheduler/espalier/internal/child"
)

// ErrNoBinary says that there is no kwok program to run.
var ErrNoBinary = errors.New("no kwok program beside devcluster nor in PATH: run `make build`, which puts it into bin/")

// stopLimit is how long kwok may take to end when asked before it is killed.
const stopLimit = 3 * time.Second

// Find returns the path of the kwok program: beside our own executable, else in PATH.
func Find() (string, error) {
	if self, err := os.Executable(); err == nil {
		if target, err := filepath.EvalSymlinks(self); err == nil {
			self = target
		}
		beside := filepath.Join(filepath.Dir(self), "kwok")
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	if path, err := exec.LookPath("kwok"); err == nil {
		return path, nil
	}
	return "", ErrNoBinary
}

// Options say how kwok is run.
type Options struct {
	Binary     string
	Kubeconfig string
	// LeaseSeconds is the life of a node's lease; a quarter of it is the time between renewals.
	LeaseSeconds int
	// LogFile takes everything kwok prints. Verbose makes that every single step.
	LogFile string
	Verbose bool
	// Dir is the working folder; kwok's own settings file is written there.
	Dir string
}

// settings are kwok's: more hands than its default of four, so that a thousand pods
// of one Deployment run within seconds of being bound.
const settings = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  podPlayStageParallelism: 16
  nodePlayStageParallelism: 16
  nodeLeaseParallelism: 8
  podsOnNodeSyncParallelism: 4
`

// Process is a running kwok. It never outlives the program that started it.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start runs kwok.
func Start(o Options) (*Process, error) {
	config := filepath.Join(o.Dir, "kwok.yaml")
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		return nil, fmt.Errorf("writing the settings of kwok: %w", err)
	}
	log, err := os.OpenFile(o.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of kwok: %w", err)
	}
	level := "WARN"
	if o.Verbose {
		level = "INFO"
	}
	cmd := exec.Command(o.Binary,
		"--kubeconfig="+o.Kubeconfig,
		"--config="+config,
		"--enable-crds=Stage",
		// A selector would be handy to stop nodes, but kwok takes none for a node
		// without any label at all.
		"--manage-all-nodes=true",
		"--cidr=10.128.0.0/9",
		"--node-ip=192.0.2.1", // for nodes that bring no address; kept free for documentation
		fmt.Sprintf("--node-lease-duration-seconds=%d", o.LeaseSeconds),
		"--v="+level,
	)
	cmd.Dir = o.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	p := &Process{cmd: cmd, done: make(chan struct{})}
	err = child.Start(cmd, func(err error) {
		_ = log.Close()
		p.err = err
		close(p.done)
	})
	if err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("starting %s: %w", o.Binary, err)
	}
	return p, nil
}

// Done is closed when kwok has ended, for whatever reason.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how kwok ended; it may be read once Done is closed.
func (p *Process) Err() error {
	if p.err == nil {
		return errors.New("kwok ended by itself")
	}
	return fmt.Errorf("kwok ended: %w", p.err)
}

// Stop ends kwok and returns when it is gone.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
