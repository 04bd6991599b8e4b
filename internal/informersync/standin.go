// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// moment is the time between two questions at most.
	moment = 2 * time.Second
	// answerTimeout is for how long an answer is waited for, as the API server itself takes for a list at most. With less an API server that is slow and
	// sound would be left alone with each question, and a process that ends because a kind can be read would meet the same when it starts again.
	answerTimeout = time.Minute
)

// errSilence is what a request ends in that is not answered in time. It is no timeout, as which a client would take a watch for one that has begun.
var errSilence = errors.New("no answer")

// neverRead reports whether a kind is one that may be stood in for, and that was never read.
func (t *Tracker) neverRead(of schema.GroupVersionResource) (is bool) {
	if !t.options.StandIn(of) {
		return false
	}
	t.with(of, func(k *kind) { is = k.filled.IsZero() })
	return is
}

// left is how much of its time a kind has left, which may be none.
func (t *Tracker) left(of schema.GroupVersionResource) (left time.Duration) {
	t.with(of, func(k *kind) { left = timeout - t.clock.Since(k.list.since) })
	return left
}

// replaced asks for a kind that was never read, again and again for as long as it has time left. After that the informer is told that there are no
// objects, so that it no longer keeps the scheduler from starting, and asks again all the same: for all objects each time, because a watch of changes
// is refused. An informer itself asks less and less often, and would come to its end half a minute late.
func (t *transport) replaced(q request, r *http.Request) (*http.Response, error) {
	if !q.lists && !q.streams {
		return reply(r, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"nothing has been read"}`), nil
	}
	for {
		wait := answerTimeout
		if q.streams {
			wait = timeout // it begins before its objects are read
		}
		answer, err := t.inTime(r, wait)
		answer, err = t.learn(r.Context(), q, answer, err)
		if err == nil && answer.StatusCode == http.StatusOK || r.Context().Err() != nil {
			return answer, err
		}
		if err == nil {
			_ = answer.Body.Close()
		}
		if q.streams {
			// Of some answers a client repeats a stream for ever. Of this it asks for a list.
			return nil, fmt.Errorf("a stream of %s was not answered well", q.of.Resource)
		}
		left := t.tracker.left(q.of)
		if left <= 0 {
			t.tracker.with(q.of, func(k *kind) { k.stoodIn = true })
			return reply(r, http.StatusOK, `{"metadata":{"resourceVersion":"0"},"items":[]}`), nil
		}
		timer := t.tracker.clock.NewTimer(min(left, moment))
		select {
		case <-timer.C():
		case <-r.Context().Done():
			timer.Stop()
			t.tracker.givenUp(q.of)
			return nil, r.Context().Err()
		}
	}
}

// inTime asks, and waits so long for the answer to begin.
func (t *transport) inTime(r *http.Request, wait time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := t.tracker.clock.NewTimer(wait)
	defer timer.Stop() // here and not in the goroutine, which may still be there when the answer is read
	answered := make(chan struct{})
	go func() {
		select {
		case <-timer.C():
			cancel(errSilence)
		case <-answered:
		}
	}()
	answer, err := t.RoundTripper.RoundTrip(r.WithContext(ctx))
	close(answered)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilence) {
			err = errSilence
		}
		cancel(nil)
		return nil, err
	}
	answer.Body = &ending{answer.Body, func() { cancel(nil) }}
	return answer, nil
}

// ending is an answer that ends its request.
type ending struct {
	io.ReadCloser
	end func()
}

func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

// reply is an answer that the API server has not given.
func reply(r *http.Request, code int, text string) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}
}
