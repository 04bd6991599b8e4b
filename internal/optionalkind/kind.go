// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package optionalkind

import (
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// lackOfRight is how long the API server forbids something until it is more than the start of an API server.
const lackOfRight = 30 * time.Second

// ErrUnread is why a kind is not known before anything is known of the objects that there are.
var ErrUnread = errors.New("have not been read yet")

// Handler keeps the objects of a kind. Its functions are called without a lock of the kind, and may ask it. None of them is nil.
type Handler struct {
	// Store is what an informer keeps of an object.
	Store cache.TransformFunc
	// Seen is told of an object that is new or has changed, as Store has it, and Gone of the key of one that is gone.
	Seen func(obj any)
	Gone func(key string)
	// None is told that there are no objects: those that were seen are gone.
	None func()
	// Known is told when the objects are known, and were not.
	Known func()
	// Readable is told when it may have changed whether the kind can be read: see Kind.Unreadable.
	Readable func()
}

// Kind is what is known of the objects of a kind. It is safe for concurrent use.
type Kind struct {
	// noun is what the objects are called in messages, and resource the kind's resource in rights.
	noun, resource string
	handler        Handler

	// ForbiddenFor is how long the API server forbids objects to be read until it counts as the lack of a right. It is for tests.
	ForbiddenFor time.Duration

	// answered is closed when it is known for the first time, or known why not.
	answered chan struct{}
	answer   sync.Once

	mu sync.Mutex // guards all below
	// err is why it is not known; nil if it is.
	err error
	// forbiddenSince is when the API server began to forbid that it is read; zero if it did not the last time.
	forbiddenSince time.Time
	// unreadable: it could not be read the last time.
	unreadable bool
}

// New returns a kind of which nothing is known. The noun is what its objects are called in messages, in the plural.
func New(noun, resource string, handler Handler) *Kind {
	return &Kind{
		noun: noun, resource: resource, handler: handler, ForbiddenFor: lackOfRight, answered: make(chan struct{}),
		err: fmt.Errorf("%s %w", noun, ErrUnread),
	}
}

// Known returns a kind whose objects are known and do not change, for simulations and tests. It is not watched.
func Known() *Kind {
	k := &Kind{answered: make(chan struct{})}
	close(k.answered)
	return k
}

// Err says why the objects are not known, nil if they are.
func (k *Kind) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		return nil
	}
	return fmt.Errorf("%w: see whether the API server answers, and the scheduler's right to list and watch %s", k.err, k.resource)
}

// Unreadable reports that the kind could not be read the last time. It may be known all the same, from before.
func (k *Kind) Unreadable() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unreadable
}

// Answered is closed when the kind is known for the first time, or known why it is not.
func (k *Kind) Answered() <-chan struct{} { return k.answered }

// Settle says that what was seen is all there is.
func (k *Kind) Settle() {
	k.Read()
	k.settle()
}

// Read says that the API server lets the kind be read.
func (k *Kind) Read() {
	k.mu.Lock()
	k.forbiddenSince, k.unreadable = time.Time{}, false
	k.mu.Unlock()
	k.handler.Readable()
}

// settle has what was seen count.
func (k *Kind) settle() {
	k.mu.Lock()
	was := k.err
	k.err = nil
	k.mu.Unlock()
	k.answer.Do(func() { close(k.answered) })
	if was != nil {
		k.handler.Known()
	}
}

// None says that there are no objects.
func (k *Kind) None() {
	k.handler.None()
	k.Settle()
}

// Unread says that there are objects of which none has been read: that there were none when their kind was not installed is no
// knowledge of what there is now.
func (k *Kind) Unread() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = fmt.Errorf("%s %w", k.noun, ErrUnread)
	}
}

// Fail says why the objects are not known, unless they are: what was known when the API server could last be read holds until
// it can be read again.
//
// A scheduler without the right to read them goes on as if there were none, after some time. It will not have the right before
// somebody gives it, and pods that have nothing to do with the kind must not wait for that. But an API server that has just started
// forbids what it has not read the roles of yet.
func (k *Kind) Fail(err error) {
	// That it cannot be read is told first, as Settle tells that it can: whoever learns of the error then finds it in the metrics.
	k.mu.Lock()
	k.unreadable = true
	k.mu.Unlock()
	k.handler.Readable()

	k.mu.Lock()
	switch {
	case !apierrors.IsForbidden(err):
		k.forbiddenSince = time.Time{}
	case k.forbiddenSince.IsZero():
		since := time.Now()
		k.forbiddenSince = since
		time.AfterFunc(k.ForbiddenFor, func() { k.stillForbidden(since) })
	}
	if k.err != nil {
		k.err = fmt.Errorf("%s cannot be read: %w", k.noun, err)
	}
	k.mu.Unlock()
	k.answer.Do(func() { close(k.answered) })
}

// stillForbidden goes on as if there were no objects, if it has been forbidden to read them since a time.
func (k *Kind) stillForbidden(since time.Time) {
	k.mu.Lock()
	is := k.forbiddenSince.Equal(since)
	k.mu.Unlock()
	if is {
		k.settle()
	}
}
