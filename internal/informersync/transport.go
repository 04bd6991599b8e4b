// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// Wrap has the informers of a client tracked, by its transport.
func (t *Tracker) Wrap(below http.RoundTripper) http.RoundTripper { return &transport{below, t} }

// transport tracks what passes it.
type transport struct {
	http.RoundTripper
	tracker *Tracker
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	q, is := readRequest(r)
	if !is {
		return t.RoundTripper.RoundTrip(r)
	}
	if q.streams || q.lists {
		t.tracker.asked(q.of, q.namespaced)
	}
	if t.tracker.neverRead(q.of) {
		return t.replaced(q, r)
	}
	answer, err := t.RoundTripper.RoundTrip(r)
	return t.learn(r.Context(), q, answer, err)
}

// learn notes what an answer says. The answer that it returns is the one to go on with.
func (t *transport) learn(ctx context.Context, q request, answer *http.Response, err error) (*http.Response, error) {
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			t.tracker.givenUp(q.of)
		} else {
			t.failed(q, NoAnswer, err.Error())
		}
		return answer, err
	}
	if answer.StatusCode == http.StatusOK {
		if !q.lists {
			t.tracker.with(q.of, func(k *kind) { k.watch, k.right = failure{}, failure{} })
		}
		if !q.lists && !q.streams {
			t.tracker.read(q.of) // changes are asked for by who has all objects
		} else {
			moved, lost := t.tracker.reads(q.of)
			answer.Body = &body{ReadCloser: answer.Body, whole: q.lists, read: func() { t.tracker.read(q.of) }, moved: moved, lost: lost}
		}
		return answer, nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, longest))
	answer.Body = &again{io.MultiReader(bytes.NewReader(text), answer.Body), answer.Body}
	if err != nil { // whoever reads it meets the error as well
		t.failed(q, NoAnswer, err.Error())
		return answer, nil
	}
	status := statusOf(q, answer.StatusCode, text)
	switch {
	case apierrors.IsNotFound(status) && t.tracker.options.Absent(q.of):
		t.tracker.Forget(q.of)
	case !q.lists && (apierrors.IsResourceExpired(status) || apierrors.IsGone(status)):
		// Changes so old are not kept. All objects are asked for next, and that they are is learned from it.
	default:
		t.failed(q, cmp.Or(string(apierrors.ReasonForError(status)), "Unknown"), status.Error())
	}
	return answer, nil
}

// longest is how much is read of an answer that is an error. The status of the API server is shorter, and a page of a proxy in the log no help.
const longest = 2 << 10

// statusOf is what an answer says, as a client reads it.
func statusOf(q request, code int, text []byte) error {
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if status, is := obj.(*metav1.Status); err == nil && is && status.Message != "" {
		return &apierrors.StatusError{ErrStatus: *status}
	}
	return apierrors.NewGenericServerResponse(code, http.MethodGet, q.of.GroupResource(), "", strings.TrimSpace(string(text)), 0, true)
}

func (t *transport) failed(q request, reason, message string) {
	t.tracker.with(q.of, func(k *kind) {
		f := &k.watch
		if q.lists {
			f = &k.list
		}
		f.note(t.tracker.clock.Now(), reason, message)
		if q.streams && k.list.reason == NoAnswer {
			k.list.reason, k.list.message = reason, message // it was answered, and a list says no more
		}
	})
}

// again is an answer of which some was read.
type again struct {
	io.Reader
	io.Closer
}

// body tells when all objects were read: at the end of a list, and at the mark in a stream. Before that it tells of each part, and of another end.
type body struct {
	io.ReadCloser
	whole             bool
	read, moved, lost func()
	// tail is the end of what was read, in which the mark may begin.
	tail []byte
}

// mark is the annotation of the event after the last object, in JSON and in protobuf.
var mark = []byte(metav1.InitialEventsAnnotationKey)

func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.read == nil {
		return n, err
	}
	done := b.whole && errors.Is(err, io.EOF)
	if !b.whole {
		b.tail = append(b.tail, into[:n]...)
		done = bytes.Contains(b.tail, mark)
		b.tail = append(b.tail[:0], b.tail[max(0, len(b.tail)-len(mark)):]...)
	}
	switch {
	case done:
		b.read()
		b.read, b.tail = nil, nil
	case err != nil:
		b.lost()
	case n > 0:
		b.moved()
	}
	return n, err
}

// Close may be called while Read waits.
func (b *body) Close() error {
	b.lost()
	return b.ReadCloser.Close()
}
