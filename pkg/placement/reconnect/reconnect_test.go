// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reconnect

import (
	"testing"
	"time"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Vector NV14: 18 facts. Nodes are waited for five minutes unless said; what is unknown is so since ten seconds.
func TestVector_NV14(t *testing.T) {
	since := now.Add(-10 * time.Second)
	for name, tc := range map[string]struct {
		p    Pod
		want Set
	}{
		"failed, on a node that is back":            {Pod{Status: Failed, UnknownSince: since}, Reconnecting},
		"running, and on its way out":               {Pod{Status: Running, Ending: true}, Ignored},
		"a canary that has ended and is to migrate": {Pod{Status: Succeeded, Canary: true, Migrate: true}, Migrating},
		"ended":                {Pod{Status: Succeeded}, Untouched},
		"unknown for too long": {Pod{Status: Unknown, UnknownSince: since, LostAfter: time.Second}, Expiring},
		"failed, on its way out, on a node that is back":     {Pod{Status: Failed, Ending: true, UnknownSince: since}, Ignored},
		"unknown on a silent node":                           {Pod{Status: Unknown, UnknownSince: since, Node: Silent}, Untouched},
		"pending on a silent node":                           {Pod{Status: Pending, Node: Silent}, Lost},
		"running on a silent node that is not waited for":    {Pod{Status: Running, Node: Silent, LostAfter: -1}, Lost},
		"running on a silent node":                           {Pod{Status: Running, Node: Silent}, Disconnecting},
		"pending and to migrate":                             {Pod{Status: Pending, Migrate: true}, Migrating},
		"running on a node that is back":                     {Pod{Status: Running, UnknownSince: since}, Reconnecting},
		"running":                                            {Pod{Status: Running}, Untouched},
		"running on a node that is gone":                     {Pod{Status: Running, Node: Gone}, Lost},
		"unknown on a node that is down, and not replaced":   {Pod{Status: Unknown, UnknownSince: since, Node: Down, NotReplaced: true}, Untouched},
		"running on a node that is down, and not replaced":   {Pod{Status: Running, Node: Down, NotReplaced: true}, Disconnecting},
		"pending on a node that is down":                     {Pod{Status: Pending, Node: Down}, Lost},
		"pending on a node that has not been ready as yet":   {Pod{Status: Pending, Node: Starting}, Untouched},
		"beyond the vector: ended by a drain, and not to be": {Pod{Status: Running, Ending: true, Kept: true}, Untouched},
	} {
		t.Run(name, func(t *testing.T) {
			switch tc.p.LostAfter {
			case 0:
				tc.p.LostAfter = 5 * time.Minute
			case -1:
				tc.p.LostAfter = 0
			}
			if got := Classify(tc.p, now); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Vector NV17: who stays. A better score is fewer pods misplaced here.
func TestVector_NV17(t *testing.T) {
	const longer, shorter = time.Hour, 30 * time.Minute
	one := func(misplaced int64, running bool) Candidate {
		return Candidate{Running: running, Misplaced: []int64{misplaced}}
	}
	started := func(ago time.Duration) Candidate { return Candidate{Running: true, Started: now.Add(-ago)} }
	for name, tc := range map[string]struct {
		s                     Strategy
		original, replacement Candidate
		want                  bool
	}{
		"a newer revision":                      {KeepOriginal, Candidate{Revision: 1}, Candidate{Revision: 2}, true},
		"an older revision":                     {KeepReplacement, Candidate{Revision: 2}, Candidate{Revision: 1}, false},
		"the original":                          {KeepOriginal, one(2, true), one(1, true), false},
		"the replacement":                       {KeepReplacement, one(1, true), one(2, true), true},
		"the one that has run longer":           {KeepLongestRunning, started(longer), started(shorter), false},
		"the other one that has":                {KeepLongestRunning, started(shorter), started(longer), true},
		"the only one that runs":                {KeepLongestRunning, Candidate{}, started(shorter), true},
		"neither runs: the better place":        {KeepLongestRunning, one(2, false), one(1, false), true},
		"better, both running":                  {KeepBestPlaced, one(2, true), one(1, true), true},
		"worse, both running":                   {KeepBestPlaced, one(1, true), one(2, true), false},
		"better, and pending":                   {KeepBestPlaced, one(2, true), one(1, false), false},
		"better, and the original pending":      {KeepBestPlaced, one(2, false), one(1, true), true},
		"worse, and the original pending":       {KeepBestPlaced, one(1, false), one(2, true), false},
		"worse, and pending":                    {KeepBestPlaced, one(1, true), one(2, false), false},
		"as good: the original, which is there": {KeepBestPlaced, one(1, true), one(1, true), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Pick(tc.s, tc.original, tc.replacement); got != tc.want {
				t.Errorf("the replacement stays: %t", got)
			}
		})
	}
}
