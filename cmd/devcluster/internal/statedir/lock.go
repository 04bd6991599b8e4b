// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// takeLock opens file, locks it for this process and writes its id into it.
func takeLock(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		_ = f.Close()
		return nil, err
	}
	if _, err := fmt.Fprintln(f, os.Getpid()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
