// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"testing"
	"time"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
)

// recordOf is a record of failures of web on n1 at noon, and of a success on n2, under a rule.
func recordOf(rule string) string {
	return fmt.Sprintf(`{"version":1,"revisions":[{"workload":"ns/StatefulSet.apps/web","revision":"1","rule":%s,"nodes":[
		{"node":"n1","failures":[{"pod":"a","kind":"Error","at":"2026-01-31T11:59:58Z"},{"pod":"b","at":"2026-01-31T11:59:59Z"},{"pod":"a","at":"9999-01-01T00:00:00Z"}]},
		{"node":"n2","succeeded":"2026-01-31T12:00:00Z"},{"node":""}],
		"family":"uid-of-web","regarding":{"kind":"StatefulSet","name":"web"},"marked":["n1","","n99"]}]}`, rule)
}

// Whoever may write ConfigMaps could write anything: a scheduler that ends by it would
// end at every start.
func FuzzRecord(f *testing.F) {
	for _, rule := range []string{
		"null", "{}", `{"threshold":5,"window":300000000000}`, `{"threshold":2,"window":0}`, `{"threshold":1,"window":-1}`,
		`{"threshold":9223372036854775807,"window":9223372036854775807}`, `{"threshold":-9223372036854775808,"window":-9223372036854775808}`,
	} {
		f.Add([]byte(recordOf(rule)))
	}
	f.Add([]byte(`{"version":-1,"revisions":[{"nodes":null},{"nodes":[{"node":"n1","failures":[{}]}]}]}`))
	f.Add([]byte(`{"version":1,"revisions":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newRig(t, options())
		known, err := record.Decode(text)
		if err != nil && len(known.Revisions) > 0 {
			t.Errorf("what cannot be read has %d revisions", len(known.Revisions))
		}
		r.restore(known)
		r.activate()
		r.reject("web", "n1", 6)
		r.see(r.ready(pod("well", "n2")))
		r.pass(time.Minute)
		written, err := r.writeRecord(t.Context(), nil)
		r.must(err)
		next := r.renew(options())
		if known, err = record.Decode(written); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		next.restore(known)
		next.clock.Step(49 * time.Hour)
		next.tick()
		if left := next.ledger.Revisions(); len(left) > 0 {
			t.Errorf("after two days %v is known", left)
		}
	})
}
