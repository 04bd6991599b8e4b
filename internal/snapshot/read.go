// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is how many objects are asked for at once: so many pods are a few MiB, and a cluster of 50,000 shows progress.
const page = 2000

// Progress is told how far the reading is: what is read, how many of the kinds have been read, and how many objects. It is called from several
// goroutines.
type Progress func(what string, kind, kinds, objects int)

// Read reads a snapshot from an API server. What may not be read, or is not there, is named in Unread; without nodes or pods it fails.
//
// Of pods there are most, and their pages can only be read one after the other. All other kinds are read beside them.
func Read(ctx context.Context, api client.Reader, server string, now time.Time, progress Progress) (*Snapshot, error) {
	all := sources()
	r := reading{Reader: api, kinds: len(all), progress: progress}
	var pods, others Snapshot
	var othersErr error
	var beside sync.WaitGroup
	beside.Go(func() { othersErr = r.read(ctx, &others, all[1:]) })
	podsErr := r.read(ctx, &pods, all[:1])
	beside.Wait()
	if err := cmp.Or(podsErr, othersErr); err != nil {
		return nil, err
	}
	others.Taken, others.Server, others.Objects = now, server, append(pods.Objects, others.Objects...)
	return &others, nil
}

// reading is one, and how far it is.
type reading struct {
	client.Reader

	kinds         int
	progress      Progress
	done, objects atomic.Int64
}

// read reads kinds one after the other.
func (r *reading) read(ctx context.Context, into *Snapshot, of []source) error {
	for _, from := range of {
		told := func() {
			if r.progress != nil {
				r.progress(from.what, int(r.done.Load()), r.kinds, int(r.objects.Load()))
			}
		}
		told()
		var err error
		if from.list == nil {
			err = into.readRecords(ctx, r)
		} else {
			err = eachObject(ctx, r, from.list, func(o runtime.Object) {
				r.objects.Add(1)
				into.Add(o)
			}, told)
		}
		switch {
		case err == nil:
		case !from.needed && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)): // no such kind, so that there are none
		case !from.needed && apierrors.IsForbidden(err):
			into.Unread = append(into.Unread, fmt.Sprintf("%s: %v", from.what, err))
		default:
			return fmt.Errorf("listing %s: %w", from.what, err)
		}
		r.done.Add(1)
	}
	return nil
}

// eachObject reads one kind, page by page.
func eachObject(ctx context.Context, api client.Reader, list func() client.ObjectList, add func(runtime.Object), read func()) error {
	next := ""
	for {
		one := list()
		if err := api.List(ctx, one, &client.ListOptions{Limit: page, Continue: next}); err != nil {
			return err
		}
		// Each is an object of its own: what points at one of a page would keep the page, and such pointers take longer the more there are of
		// them into one array.
		if err := meta.EachListItemWithAlloc(one, func(o runtime.Object) error {
			add(o)
			return nil
		}); err != nil {
			return err
		}
		read()
		if next = one.GetContinue(); next == "" {
			return nil
		}
	}
}
