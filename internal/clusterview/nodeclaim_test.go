// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEndOfClaim(t *testing.T) {
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		expireAfter any
		terminated  string
		want        time.Time
		problem     string
	}{
		"nothing":             {},
		"expires":             {expireAfter: "720h", want: made.Add(720 * time.Hour)},
		"never":               {expireAfter: "Never"},
		"terminated before":   {expireAfter: "720h", terminated: "2026-01-02T00:00:00Z", want: made.Add(24 * time.Hour)},
		"terminated after":    {expireAfter: "1h", terminated: "2026-01-02T00:00:00Z", want: made.Add(time.Hour)},
		"terminated alone":    {terminated: "2026-01-02T00:00:00Z", want: made.Add(24 * time.Hour)},
		"malformed":           {expireAfter: "soon", problem: `NodeClaim c: spec.expireAfter: "soon" is no duration`},
		"negative":            {expireAfter: "-1h", problem: `NodeClaim c: spec.expireAfter: "-1h" is no duration`},
		"overflow":            {expireAfter: "9999999999h", problem: `NodeClaim c: spec.expireAfter: "9999999999h" is no duration`},
		"no text":             {expireAfter: int64(3), problem: "NodeClaim c: "},
		"malformed timestamp": {terminated: "soon", problem: `NodeClaim c: annotation karpenter.sh/nodeclaim-termination-timestamp: no time "soon"`},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}, "status": map[string]any{"nodeName": "n"}}}
			claim.SetName("c")
			claim.SetCreationTimestamp(metav1.NewTime(made))
			if tc.expireAfter != nil {
				claim.Object["spec"] = map[string]any{"expireAfter": tc.expireAfter}
			}
			if tc.terminated != "" {
				claim.SetAnnotations(map[string]string{terminationTimestamp: tc.terminated})
			}
			is, err := EndOfClaim(claim)
			if !is.Equal(tc.want) || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("got %v and %v, want %v and %q", is, err, tc.want, tc.problem)
			}
			if node := NodeOfClaim(claim); node != "n" {
				t.Errorf("its node is %q", node)
			}
		})
	}
}
