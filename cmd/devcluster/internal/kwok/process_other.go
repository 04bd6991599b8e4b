// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kwok

import "syscall"

// childAttributes keep the terminal's Ctrl-C from kwok. Only Linux can tie its life
// to ours: elsewhere a devcluster killed with SIGKILL leaves kwok behind.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
