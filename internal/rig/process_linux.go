// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rig

import "syscall"

// childAttributes makes the kernel tell the child to end when we die without
// having done so ourselves, even by SIGKILL. SIGTERM and not SIGKILL, because
// devcluster has children and a folder of its own to see to.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
