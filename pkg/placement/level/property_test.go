// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package level_test

import (
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/level"
	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestParseProperty(t *testing.T) {
	long := strings.Repeat("a", 63)
	domain := strings.Repeat("a.", 126) + "a" // 253 characters
	for _, tc := range []struct {
		in, label, canonical string
	}{
		{"node.name", "", "node.name"},
		{"NODE.Name", "", "node.name"},
		{"rack", "rack", "rack"},
		{"Rack_1.b-2", "Rack_1.b-2", "Rack_1.b-2"},
		{"7", "7", "7"},
		{"node", "node", "node"},
		{"nodes.x", "nodes.x", "nodes.x"},
		{"topology.kubernetes.io/zone", "topology.kubernetes.io/zone", "topology.kubernetes.io/zone"},
		{"node.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"},
		{"node.labels.rack", "rack", "rack"},
		{"Node.Labels.Rack", "Rack", "Rack"},
		{"engine.labels.rack", "rack", "rack"},
		{"ENGINE.LABELS.operatingsystem", "operatingsystem", "operatingsystem"},
		{"node.labels.example.com/rack", "example.com/rack", "example.com/rack"},
		{"node.labels.node.id", "node.id", "node.labels.node.id"},
		{"engine.labels.engine.x", "engine.x", "node.labels.engine.x"},
		{"node.labels.node.name", "node.name", "node.labels.node.name"},
		{"node.labels.node.labels.x", "node.labels.x", "node.labels.node.labels.x"},
		{"node.labels.node.labels.x/y", "node.labels.x/y", "node.labels.node.labels.x/y"},
		{"node.labels.Engine.Labels.x", "Engine.Labels.x", "node.labels.Engine.Labels.x"},
		{long, long, long},
		{domain + "/" + long, domain + "/" + long, domain + "/" + long},
	} {
		got, err := level.ParseProperty(tc.in)
		if err != nil {
			t.Errorf("ParseProperty(%q): %v", tc.in, err)
			continue
		}
		if got.Label != tc.label || got.String() != tc.canonical {
			t.Errorf("ParseProperty(%q) = label %q, text %q; want %q, %q", tc.in, got.Label, got, tc.label, tc.canonical)
		}
		if again, err := level.ParseProperty(got.String()); err != nil || again != got {
			t.Errorf("ParseProperty(%q) = %v, %v; want what it was made from", got, again, err)
		}
	}
}

func TestParsePropertyRefuses(t *testing.T) {
	for _, in := range []string{
		"", " ", " rack", "rack ", "-rack", "rack-", "_x", "x.", "ra ck", "r\u00e4ck", "a/b/c", "/rack", "example.com/",
		"Example.com/rack", "exa_mple.com/rack", "example..com/rack", "-a.com/rack", "a-.com/rack", ".com/x", "a./x",
		strings.Repeat("a", 64), strings.Repeat("a.", 127) + "/rack", "a/" + strings.Repeat("a", 64),
		"node.", "node.id", "node.ip", "node.hostname", "node.role", "node.platform.os", "Node.Hostname", "node.labels", "node.label.rack",
		"engine.", "engine.foo", "engine.labels", "ENGINE.Foo", "node.labels.", "engine.labels.", "node.labels.-x", "node.labels. x",
		"node.labels.a b", "engine.labels.é", "*",
	} {
		got, err := level.ParseProperty(in)
		if err == nil {
			t.Errorf("ParseProperty(%q) = %v, want an error", in, got)
			continue
		}
		placementtest.CheckRefusal(t, err, maxMessage)
	}
}

func TestParsePropertySaysHowToNameSuchALabel(t *testing.T) {
	_, err := level.ParseProperty("node.hostname")
	const want = `unknown property "node.hostname": use node.name or the key of a node label, such as ` +
		`topology.kubernetes.io/zone or node.labels.rack; a node label of this very key is node.labels.node.hostname`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
