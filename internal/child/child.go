// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package child starts processes that somebody waits for from their first moment, and
// that may ask the kernel to end them with us.
package child

import (
	"os/exec"
	"runtime"
)

// Start starts a command. Once it has ended, by whatever cause, ended is told how.
//
// It is started and waited for on one thread from first to last: the kernel tells the
// child of our death when the thread that forked ends, and Go ends idle threads at will.
func Start(cmd *exec.Cmd, ended func(error)) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended(cmd.Wait())
		}
	}()
	return <-started
}
