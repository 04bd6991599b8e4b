// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

func TestMain(m *testing.M) {
	placementtest.Settle(nil)
	m.Run()
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// The book says the same as a list of all reservations that is gone through each time.
func TestBookIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Book
		var list []Reservation
		now := 0
		name := func(t *rapid.T, kind string) string { return kind + rapid.StringMatching("[0-3]").Draw(t, kind) }
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				r := Reservation{name(t, "p"), name(t, "n"), at(now + 10)}
				last := len(list)
				list = slices.DeleteFunc(list, func(o Reservation) bool { return o.Pod == r.Pod && o.Node == r.Node })
				known := len(list) < last
				list = append(list, r)
				if b.Reserve(r.Pod, r.Node, r.Until) == known {
					t.Fatalf("reserving %v: it is known: %t", r, known)
				}
			},
			"release": func(t *rapid.T) {
				pod := name(t, "p")
				var want []string
				list = slices.DeleteFunc(list, func(r Reservation) bool {
					if r.Pod == pod {
						want = append(want, r.Node)
					}
					return r.Pod == pod
				})
				if got := b.Release(pod); !slices.Equal(got, want) {
					t.Fatalf("%s gives back %v, want %v", pod, got, want)
				}
			},
			"expire": func(t *rapid.T) {
				now += rapid.IntRange(0, 6).Draw(t, "seconds")
				var want []Reservation
				list = slices.DeleteFunc(list, func(r Reservation) bool {
					over := !r.Until.After(at(now))
					if over {
						want = append(want, r)
					}
					return over
				})
				if got := b.Expire(at(now)); !slices.Equal(got, want) {
					t.Fatalf("at %d %v have expired, want %v", now, got, want)
				}
			},
			"": func(t *rapid.T) {
				if b.Len() != len(list) || len(b.queue) < len(list) {
					t.Fatalf("there are %d of %d", b.Len(), len(list))
				}
				for _, r := range list {
					if !b.Has(r.Pod, r.Node) {
						t.Fatalf("%v is missing", r)
					}
				}
			},
		})
	})
}
