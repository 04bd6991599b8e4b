// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/espalier-scheduler/espalier/internal/child"
)

// binaryEndLimit is how long a program may take to end when it is asked to, before it is killed.
const binaryEndLimit = time.Second

// versionLimit is how long a program may take to say its version.
const versionLimit = 10 * time.Second

// binaries are the programs of Options.Kubernetes.
var binaries = []string{apiServerPart, managerPart}

// findBinaries makes the folder of Options.Kubernetes absolute, if there is one: a bare name would be looked up in PATH. It refuses one without the
// programs.
func (o *Options) findBinaries() (err error) {
	if o.Kubernetes == "" {
		return nil
	}
	if o.Kubernetes, err = filepath.Abs(o.Kubernetes); err != nil {
		return fmt.Errorf("--kubernetes: %w", err)
	}
	for _, name := range binaries {
		if _, err := exec.LookPath(filepath.Join(o.Kubernetes, name)); err != nil {
			return fmt.Errorf("--kubernetes=%s: no %s can be run there, which hack/versions.sh builds: %w", o.Kubernetes, name, err)
		}
	}
	return nil
}

var errByItself = errors.New("it ended by itself")

// runBinary runs a program of Options.Kubernetes until the context ends. Its log has its name.
func (c *cluster) runBinary(ctx context.Context, name string, args []string) error {
	path := filepath.Join(c.dir.File("logs"), name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(filepath.Join(c.Kubernetes, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	var last error // set before ended is closed
	ended := make(chan struct{})
	err = child.Start(cmd, func(err error) {
		last = err
		close(ended)
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	select {
	case <-ended:
		return fmt.Errorf("%s ended, see %s: %w", name, path, cmp.Or(last, errByItself))
	case <-ctx.Done():
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(binaryEndLimit):
		_ = cmd.Process.Kill()
		<-ended
	}
	return nil
}

// betaArgs has a kube-apiserver of before 1.36 serve the policies that change objects, of which KWOK's nodes need one.
func (c *cluster) betaArgs(ctx context.Context) ([]string, error) {
	is, err := c.binaryVersion(ctx, apiServerPart)
	if err != nil || !is.LessThan(version.MajorMinor(1, 36)) {
		return nil, err
	}
	// The last value of a flag of maps is added to the ones before.
	return []string{"--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"}, nil
}

// binaryVersion asks a program of Options.Kubernetes for its version.
func (c *cluster) binaryVersion(ctx context.Context, name string) (*version.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.Kubernetes, name), "--version")
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // and what it has started
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s in %s did not say its version within %s", name, c.Kubernetes, versionLimit)
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s in %s for its version: %w", name, c.Kubernetes, err)
	}
	is, err := version.ParseGeneric(strings.TrimPrefix(strings.TrimSpace(string(out)), "Kubernetes "))
	if err != nil {
		return nil, fmt.Errorf("the version of %s in %s: %w", name, c.Kubernetes, err)
	}
	return is, nil
}
