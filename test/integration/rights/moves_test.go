// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"testing"

	"github.com/espalier-scheduler/espalier/internal/rig"
)

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

// TestMovesWithAllRights wants the story of each component to go as told with the rights of the controller and those of the component, and
// nothing to be refused.
func TestMovesWithAllRights(t *testing.T) {
	for folder, c := range components {
		for name, args := range map[string][]string{"streamed": nil, "listed": {listing}} {
			t.Run(folder+" "+name, func(t *testing.T) {
				t.Parallel()
				base, own := roleObjects(t, "base/controller-rbac.yaml"), roleObjects(t, "components/"+folder+"/rbac.yaml")
				s := build(t, slices.Concat(base, own), rig.ControllerName, nil)
				s.startMoving(append(c.flags(s), args...)...)
				if err := c.tell(s); err != nil {
					t.Fatal(err)
				}
				if refused := s.proxy.refusals(); len(refused) > 0 {
					t.Errorf("the roles do not give what it asks for: %v", refused)
				}
				s.asked(own, name == "listed")
			})
		}
	}
}

// TestMovesWithoutARight takes each right of each component away in turn, and wants the component's story to break.
func TestMovesWithoutARight(t *testing.T) {
	for folder, c := range components {
		t.Run(folder, func(t *testing.T) {
			own := roleObjects(t, "components/"+folder+"/rbac.yaml")
			needs := make(map[string]need)
			for _, r := range rightsIn(t, own) {
				switch key := r.key(); r.verb {
				case "watch": // some begin when there is something to do
					needs[key] = need{c.name + " and hears", func(s *stage) error {
						if err := c.tell(s); err != nil {
							return err
						}
						return hears(r.question)(s)
					}, nil}
				case "list":
					needs[key] = need{c.name, c.tell, []string{listing}}
				default:
					needs[key] = need{c.name, c.tell, nil}
				}
			}
			base := roleObjects(t, "base/controller-rbac.yaml")
			withoutEach(t, base, own, rig.ControllerName, needs, func(s *stage, n need) { s.startMoving(append(c.flags(s), n.args...)...) })
		})
	}
}
