// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSpared(t *testing.T) {
	const karpenter, autoscaler = "karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		key, value string
		runs       time.Duration // 0 for one that has not started
		spared     bool
	}{
		"nothing is said":                  {"", "", time.Hour, false},
		"Karpenter must not":               {karpenter, "true", time.Hour, true},
		"Karpenter may":                    {karpenter, "false", time.Hour, false},
		"not for four hours":               {karpenter, "4h", 4*time.Hour - time.Second, true},
		"not for four hours, which are up": {karpenter, "4h", 4 * time.Hour, false},
		"not for a time, and not started":  {karpenter, "4h", 0, true},
		"not for no time":                  {karpenter, "0s", 0, false},
		"not for a negative time":          {karpenter, "-1h", time.Second, false},
		"unreadable":                       {karpenter, "yes", time.Hour, false},
		"Cluster Autoscaler must not":      {autoscaler, "false", time.Hour, true},
		"Cluster Autoscaler may":           {autoscaler, "true", time.Hour, false},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{tc.key: tc.value}}}
		if tc.runs > 0 {
			p.Status.StartTime = &metav1.Time{Time: now.Add(-tc.runs)}
		}
		want := ""
		if tc.spared {
			want = tc.key + ": " + tc.value
		}
		if by := Spared(p, now); by != want {
			t.Errorf("%s: it is spared by %q, want %q", name, by, want)
		}
	}
}
