// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rig

import "syscall"

// childAttributes can not tie the child to our life on this system: after a
// SIGKILL of ours it is devcluster's closed standard input that ends it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
