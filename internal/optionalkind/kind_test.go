// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package optionalkind

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// TestMain fails if anything that a test has started runs on.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ignoring is a handler that does nothing, but counts how often the kind became known.
func ignoring(known *int) Handler {
	return Handler{
		Store: func(obj any) (any, error) { return obj, nil }, Seen: func(any) {}, Gone: func(string) {}, None: func() {},
		Known: func() { *known++ }, Readable: func() {},
	}
}

// An API server that has just started forbids everything for a moment. That is no lack of a right.
func TestForbiddenForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := 0
		k := New("things", "things", ignoring(&known))
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no right"))
		refused := func(when string, want bool) {
			t.Helper()
			if err := k.Err(); (err != nil) != want {
				t.Errorf("%s: %v", when, err)
			}
		}
		k.Fail(forbidden)
		refused("when it is forbidden", true)
		time.Sleep(lackOfRight - time.Second)
		refused("for less than half a minute", true)
		k.Fail(errors.New("it is down"))
		time.Sleep(2 * time.Second)
		k.Fail(forbidden)
		refused("anew, after something else", true)
		time.Sleep(lackOfRight - 2*time.Second)
		refused("anew, for less than half a minute", true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		refused("for half a minute", false)
		if known != 1 {
			t.Errorf("it became known %d times", known)
		}
	})
}

// Whoever learns that a kind cannot be read, by an error or an answer, finds it in the metrics.
func TestTellsFirstThatItCannotBeRead(t *testing.T) {
	told := false
	var k *Kind
	handler := ignoring(new(int))
	handler.Readable = func() {
		told = k.Unreadable()
		select {
		case <-k.Answered():
			t.Error("it is answered before it is told")
		default:
		}
		if err := k.Err(); !errors.Is(err, ErrUnread) {
			t.Errorf("before it is told the error is %v", err)
		}
	}
	k = New("things", "things", handler)
	k.Fail(errors.New("it is down"))
	if !told {
		t.Error("it is not told")
	}
}

// What is not known is said with what mends it, and what was known holds through an outage.
func TestErr(t *testing.T) {
	known := 0
	k := New("things", "thingsinurls", ignoring(&known))
	for _, want := range []string{"things have not been read yet", "things cannot be read: it is down"} {
		if err := k.Err(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "see whether the API server answers, and the scheduler's right to list and watch thingsinurls") {
			t.Errorf("got %v, want %s", err, want)
		}
		k.Fail(errors.New("it is down"))
	}
	k.Settle()
	k.Fail(errors.New("it is down"))
	if err := k.Err(); err != nil || !k.Unreadable() {
		t.Errorf("after it was known: %v, unreadable %t", err, k.Unreadable())
	}
	k.Unread()
	if err := k.Err(); !errors.Is(err, ErrUnread) {
		t.Errorf("of a kind that was just installed: %v", err)
	}
}

// absent is an API server that never has the kind, and tells when it is asked for it.
type absent struct {
	*APIServer
	asked chan time.Time
}

func (a *absent) Installed(context.Context) (bool, error) {
	a.asked <- time.Now()
	return false, nil
}

func (a *absent) ListWatch(func()) cache.ListerWatcher { panic("there is nothing to list") }

// The README says how often.
func TestAsksForTheKindEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server, ended, known := &absent{asked: make(chan time.Time)}, make(chan struct{}), 0
		k := New("things", "things", ignoring(&known))
		go func() {
			defer close(ended)
			k.Watch(ctx, server)
		}()
		last := <-server.asked
		for range 3 {
			at := <-server.asked
			if pause := at.Sub(last); pause != 5*time.Second {
				t.Errorf("it asks again after %s", pause)
			}
			last = at
		}
		cancel()
		<-ended
	})
}
