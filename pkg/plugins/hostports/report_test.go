// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package hostports

import (
	"strings"
	"testing"

	"k8s.io/klog/v2/ktesting"

	"github.com/espalier-scheduler/espalier/internal/clusterview"
)

// A bad annotation is told once for each time it is written, with the node, the bad
// part and what is allowed; kubelets update their nodes all the time.
func TestReport(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	log := logger.GetSink().(ktesting.Underlier).GetBuffer()
	r := reporter(logger)

	good, bad, worse := keeping("n1", "22/tcp").Obj(), keeping("n1", "22/tcp,53").Obj(), keeping("n1", "53/upd").Obj()
	r.OnAdd(good, true)
	r.OnUpdate(good, keeping("n1", "").Obj())
	r.OnDelete(bad)
	r.OnAdd("no node", false)
	r.OnUpdate("no node", bad)
	if log.String() != "" {
		t.Errorf("logged without a reason: %s", log)
	}

	r.OnAdd(bad, true)
	r.OnUpdate(bad, bad)
	r.OnUpdate(good, worse)
	r.OnUpdate(worse, worse)
	text := log.String()
	for _, want := range []string{
		"n1", clusterview.ReservedHostPortsAnnotation, `port 2 \"53\": no protocol in \"53\": write a port as 22/tcp`,
		`unknown protocol \"upd\": use tcp, udp or sctp`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %s:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "No pod with host ports"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, text)
	}
}
