// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "syscall"

// childAttributes make the kernel kill a program when we die, even by SIGKILL, and keep
// the terminal's Ctrl-C from it: we end it ourselves, after what depends on it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
