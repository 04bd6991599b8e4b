// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

import "syscall"

// childAttributes keep the terminal's Ctrl-C from a program. Only Linux can tie its life
// to ours: elsewhere a devcluster killed with SIGKILL leaves it behind.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
