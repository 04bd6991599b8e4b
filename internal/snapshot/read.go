// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is how many objects are asked for at once: so many pods are a few MiB, and a cluster of 50,000 shows progress.
const page = 2000

// Progress is told how far the reading is: how many of the kinds have been read, and how many objects.
type Progress func(what string, kind, kinds, objects int)

// Read reads a snapshot from an API server. What may not be read, or is not there, is named in Unread; without nodes or pods it fails.
func Read(ctx context.Context, api client.Reader, server string, now time.Time, progress Progress) (*Snapshot, error) {
	s := &Snapshot{Taken: now, Server: server}
	all := sources()
	for i, from := range all {
		told := func() {
			if progress != nil {
				progress(from.what, i, len(all), len(s.Objects))
			}
		}
		told()
		var err error
		if from.list == nil {
			err = s.readRecords(ctx, api)
		} else {
			err = eachObject(ctx, api, from.list, s.Add, told)
		}
		switch {
		case err == nil:
		case !from.needed && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err)): // no such kind, so that there are none
		case !from.needed && apierrors.IsForbidden(err):
			s.Unread = append(s.Unread, fmt.Sprintf("%s: %v", from.what, err))
		default:
			return nil, fmt.Errorf("listing %s: %w", from.what, err)
		}
	}
	return s, nil
}

// eachObject reads one kind, page by page.
func eachObject(ctx context.Context, api client.Reader, list func() client.ObjectList, add func(runtime.Object), read func()) error {
	next := ""
	for {
		one := list()
		if err := api.List(ctx, one, &client.ListOptions{Limit: page, Continue: next}); err != nil {
			return err
		}
		if err := meta.EachListItem(one, func(o runtime.Object) error {
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
