// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	_ "embed" // for auditPolicy
	"fmt"
	"os"
)

//go:embed audit.yaml
var auditPolicy []byte

// auditArgs are the flags of kube-apiserver for the audit log, none without one.
func (c *cluster) auditArgs() ([]string, error) {
	if c.AuditLog == "" {
		return nil, nil
	}
	policy := c.dir.File("audit-policy.yaml")
	if err := os.WriteFile(policy, auditPolicy, 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	// One file: at 100 MB kube-apiserver would begin another, and who reads it would miss what came before.
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + c.AuditLog, "--audit-log-maxsize=100000"}, nil
}
