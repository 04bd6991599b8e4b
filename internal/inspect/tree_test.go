// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"
	"testing"
	"time"
)

func TestTree(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 2)
	c.zone("b", 2)
	c.zone("c", 1)
	c.deployment("web", template(), "a-1", "a-1", "a-2", "a-1", "b-1")
	c.deployment("other", template(), "c-1", "c-1", "c-1", "c-1")
	tree, err := c.open().Tree(t.Context(), Ref{"ns", "Deployment", "web"})
	if err != nil {
		t.Fatal(err)
	}
	if tree.PlacedBy != "annotation spread=topology.kubernetes.io/zone" || len(tree.Levels) != 1 {
		t.Errorf("it is placed by %q, over %q", tree.PlacedBy, tree.Levels)
	}
	// Zone c has no room for anything: four pods of another workload take all CPU of its node.
	want := []Misplaced{{"topology.kubernetes.io/zone", 1}, {"node", 1}}
	if len(tree.Misplaced) != 2 || tree.Misplaced[0] != want[0] || tree.Misplaced[1] != want[1] {
		t.Errorf("misplaced are %v, want %v", tree.Misplaced, want)
	}
	pods := map[string]int32{}
	for _, zone := range tree.All.Below {
		pods[zone.Name] = zone.Pods
		for _, node := range zone.Below {
			pods[node.Name] = node.Pods
			if node.Fits != (node.Name != "c-1") || node.Fits == (len(node.Reasons) > 0) {
				t.Errorf("node %s fits: %t, reasons %q", node.Name, node.Fits, node.Reasons)
			}
		}
	}
	for name, n := range map[string]int32{"a": 4, "b": 1, "c": 0, "a-1": 3, "a-2": 1, "b-1": 1, "b-2": 0, "c-1": 0} {
		if pods[name] != n {
			t.Errorf("%s has %d pods, want %d", name, pods[name], n)
		}
	}
}

func TestNoTree(t *testing.T) {
	c := newCluster(t)
	c.zone("a", 1)
	foreign, daemon := template(), template()
	foreign.Spec.SchedulerName = "default-scheduler"
	daemon.Annotations = map[string]string{"espalier.dev/placement": "spread="}
	c.deployment("foreign", foreign)
	c.deployment("malformed", daemon)
	opened := c.open()
	for name, want := range map[string]string{
		"foreign":   `its schedulerName is "default-scheduler", and the configuration has ["espalier-scheduler"]`,
		"malformed": "annotation espalier.dev/placement",
		"none":      `there is no deployment/none in namespace "ns"`,
	} {
		if _, err := opened.Tree(t.Context(), Ref{"ns", "Deployment", name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", name, err, want)
		}
	}
}

func TestParseRef(t *testing.T) {
	for text, want := range map[string]string{"deployment/web": "deployment/web", "deploy/web": "deployment/web", "Deployments/web": "deployment/web", "sts/db": "statefulset/db", "rs/x": "replicaset/x", "rc/x": "replicationcontroller/x"} {
		if got, err := ParseRef("ns", text); err != nil || got.String() != want || got.Namespace != "ns" {
			t.Errorf("%q is %v, error %v", text, got, err)
		}
	}
	for _, text := range []string{"", "web", "deployment/", "job/x", "/x"} {
		if got, err := ParseRef("ns", text); err == nil {
			t.Errorf("%q is %v, and no error", text, got)
		}
	}
}

// A node on which a workload keeps failing comes last in its tree, by the record that its scheduler has written: as it was when the snapshot was taken.
func TestFaultyNode(t *testing.T) {
	for name, ago := range map[string]time.Duration{"the cluster": 0, "a snapshot of yesterday": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.Taken = time.Now().Add(-ago)
			c.zone("a", 3)
			c.deployment("web", template(), "a-1")
			c.deployment("other", template(), "a-1")
			c.failures("ns/Deployment.apps/web", "a-2", 5)
			opened := c.open()
			for workload, want := range map[string]string{"web": "a-3 fits; a-1 fits; a-2 fits, faulty (5 failures), 5 unforgiven", "other": "a-2 fits; a-3 fits; a-1 fits"} {
				tree, err := opened.Tree(t.Context(), Ref{"ns", "Deployment", workload})
				if err != nil {
					t.Fatal(err)
				}
				var nodes []string
				for _, node := range tree.All.Below[0].Below {
					nodes = append(nodes, node.Name+" "+node.State)
				}
				if got := strings.Join(nodes, "; "); got != want {
					t.Errorf("the nodes of %s are %s, want %s", workload, got, want)
				}
			}
		})
	}
}
