// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

// components are those of the manifests that have the controller change pods or nodes, each with its story and the flags that it takes.
var components = map[string]struct {
	name  string
	tell  story
	flags func(s *stage) []string
}{
	"move-drained": {"drains", drains, func(*stage) []string { return []string{"--move-drained=All"} }},
	"rebalance": {"rebalances", rebalances, func(s *stage) []string {
		return []string{
			"--rebalance=Enabled", "--rebalance-namespace-selector=kubernetes.io/metadata.name=" + s.name, "--rebalance-quiet=1s", "--rebalance-node-ready=0s", "--rebalance-pod-age=0s",
		}
	}},
	"restart-elsewhere": {"restarts", restarts, func(s *stage) []string {
		return []string{"--restart-elsewhere=Enabled", "--restart-delay=1s", "--failure-record-namespace=" + s.name}
	}},
	"keep-disconnected":     {"keeps", keeps, func(*stage) []string { return []string{"--keep-disconnected"} }},
	"repair-deletion-costs": {"repairs", repairs, func(*stage) []string { return []string{"--repair-deletion-costs=Repair", "--repair-quiet=0s"} }},
	"renew-leases": {"renews", renews, func(s *stage) []string {
		return []string{"--renew-leases", "--renew-namespace-selector=kubernetes.io/metadata.name=" + s.name}
	}},
	"stagger-ends": {"retires", retires, func(s *stage) []string { return []string{"--stagger-ends=" + ofStage + "=" + s.name} }},
	"node-claims":  {"claims", claims, func(*stage) []string { return []string{"--node-claims"} }},
}

// startMoving starts the controller for the Moves and NodeClaims of the stage alone. It would carry out those of others, with rights that they
// may lack.
func (s *stage) startMoving(args ...string) {
	s.Helper()
	s.proxy.only = s.name
	s.startController(args...)
}
