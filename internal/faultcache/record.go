// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
	"github.com/espalier-scheduler/espalier/pkg/placement/failure"
)

const (
	// between is the least time between two writings of the record, and perSecond, in
	// bytes, by how much a longer one waits longer: the longest for half a minute.
	between   = 2 * time.Second
	perSecond = 32 << 10
)

// readRecord adds what the record has to what is known. An error is said, and stops
// nothing: less is known then. Before it is known which nodes there are nothing could be
// made of it.
func (c *Cache) readRecord(ctx context.Context) {
	if c.configMap == nil || !c.hasBegun() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, calling)
	defer cancel()
	text, err := c.configMap.Read(ctx)
	if err != nil {
		c.unread(ctx, err)
		return
	}
	r, err := record.Decode(text)
	if err != nil {
		// Ours, and of no use to anybody: the next one replaces it.
		c.unread(ctx, fmt.Errorf("%v cannot be read and will be replaced: %w", c.configMap, err))
	} else {
		c.unreadable.Store(false)
	}
	c.restore(r)
}

// unread says that the record could not be read, once until it could.
func (c *Cache) unread(ctx context.Context, err error) {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return
	}
	sourceErrorsTotal.WithLabelValues(c.options.SchedulerName, sourceRecord).Inc()
	if c.unreadable.Swap(true) {
		return
	}
	klog.FromContext(ctx).Error(err, "What an earlier scheduler knew of failures is not known")
	c.emit([]pendingEvent{{
		regarding: &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: c.configMap.Namespace, Name: c.configMap.Name},
		kind:      corev1.EventTypeWarning, reason: ReasonRecordUnreadable, note: err.Error(),
	}})
}

// restore merges a record with what is known by now.
func (c *Cache) restore(r *record.Record) {
	var snapshot failure.Snapshot
	for i := range r.Revisions {
		history := r.Revisions[i].RevisionHistory
		history.Nodes = slices.DeleteFunc(slices.Clone(history.Nodes), func(n failure.NodeHistory) bool {
			_, err := c.nodes.Get(n.Node)
			return err != nil
		})
		for j := range history.Nodes {
			n := &history.Nodes[j]
			n.Failures = slices.DeleteFunc(slices.Clone(n.Failures), func(f failure.Failure) bool { return !c.counts(n.Node, f.At) })
			if !c.counts(n.Node, n.Succeeded) {
				n.Succeeded = time.Time{}
			}
		}
		snapshot.Revisions = append(snapshot.Revisions, history)
	}
	sets := c.replicaSets()
	c.lock()
	defer c.mu.Unlock()
	c.recordRead = true
	c.ledger.Restore(snapshot)
	for _, m := range c.marks {
		m.announced = false
	}
	c.restoreSuspects(r.Suspects)
	for i := range r.Revisions {
		saved := &r.Revisions[i]
		of := saved.Of()
		for _, node := range saved.Marked {
			c.marks[markKey{of, node}] = &mark{regarding: saved.Regarding, announced: true}
		}
		if c.ledger.Knows(of) && c.tracked[of] == nil {
			t := &tracked{family: saved.Family, regarding: saved.Regarding, failed: saved.Newest()}
			t.orphaned = c.begun && t.isOfReplicaSet() && !sets[t.family]
			c.track(of, t)
		}
	}
	c.wake()
}

// toWrite is the record as it is to be, and whether nothing is known. It holds the lock for
// one revision at a time, and no longer than it takes to copy it: placing a pod waits for
// the lock.
func (c *Cache) toWrite() (r *record.Record, empty bool) {
	r = record.New()
	marked, suspects, empty := c.announcements()
	r.Suspects = suspects
	for _, of := range c.allKnown() {
		if saved, ok := c.toSave(of); ok {
			saved.Marked = marked[of]
			r.Revisions = append(r.Revisions, saved)
		}
	}
	return r, empty
}

// announcements are the marked nodes of each revision and the suspects to taint, in order, and whether
// nothing is known.
func (c *Cache) announcements() (nodes map[failure.Revision][]string, suspects []string, empty bool) {
	nodes = make(map[failure.Revision][]string)
	c.lock()
	for key, m := range c.marks {
		if m.announced {
			nodes[key.Revision] = append(nodes[key.Revision], key.Node)
		}
	}
	suspects = c.toTaint()
	empty = len(c.tracked) == 0 && len(c.marks) == 0 && len(suspects) == 0
	c.mu.Unlock()
	for of := range nodes {
		slices.Sort(nodes[of])
	}
	return nodes, suspects, empty
}

// allKnown are the revisions in the ledger, in order.
func (c *Cache) allKnown() (all []failure.Revision) {
	for of := range c.known.Range {
		if of, ok := of.(failure.Revision); ok {
			all = append(all, of)
		}
	}
	slices.SortFunc(all, failure.Revision.Compare)
	return all
}

// toSave is a revision of the record; false if it is not known any more.
func (c *Cache) toSave(of failure.Revision) (saved record.Revision, ok bool) {
	c.lock()
	captured, ok := c.ledger.Capture(of)
	own, _ := c.ledger.Own(of)
	saved.Threshold = c.ledger.Rule(of).Threshold
	if t := c.tracked[of]; t != nil {
		saved.Family, saved.Regarding = t.family, t.regarding
	}
	c.mu.Unlock()
	saved.RevisionHistory = captured.History()
	for _, o := range own {
		saved.Own = append(saved.Own, o.Kind)
	}
	return saved, ok
}

// keepRecord writes the record when it has changed, until the context ends.
func (c *Cache) keepRecord(ctx context.Context) {
	if c.configMap == nil {
		return
	}
	var written []byte
	wait := between
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.unwritten:
		}
		if !c.active.Load() {
			continue
		}
		pause := between
		if text, err := c.writeRecord(ctx, written); err == nil {
			written, wait = text, between
			// The API server stores it as a whole each time.
			pause += time.Duration(len(text)/perSecond) * time.Second
		} else {
			pause, wait = wait, min(2*wait, sweeping)
			token(c.unwritten)
		}
		if !c.rest(ctx, pause) {
			return
		}
	}
}

// rest is the pause between two writes. A new mark ends that after a long record: who
// takes over next must know it.
func (c *Cache) rest(ctx context.Context, pause time.Duration) bool {
	least := min(pause, between)
	return c.sleep(ctx, least, nil) && c.sleep(ctx, pause-least, c.urgent)
}

// errUnread is why the record is not written: that would be to forget what is there.
var errUnread = errors.New("the record of the last scheduler is not known")

// writeRecord writes the record unless it is as it was written. It returns what is
// written now.
func (c *Cache) writeRecord(ctx context.Context, written []byte) ([]byte, error) {
	if !c.isRecordRead() {
		if c.readRecord(ctx); !c.isRecordRead() {
			return nil, errUnread
		}
	}
	next, empty := c.toWrite()
	text, err := next.Encode(record.Limit)
	if bytes.Equal(text, written) || written == nil && empty && !c.configMap.Found.Load() {
		return written, nil
	}
	ctx, cancel := context.WithTimeout(ctx, calling)
	defer cancel()
	if err == nil {
		err = c.configMap.Write(ctx, text)
	}
	if err != nil {
		recordWritesTotal.WithLabelValues(c.options.SchedulerName, resultError).Inc()
		if !c.unwritable.Swap(true) {
			klog.FromContext(ctx).Error(err, "What is known of failures is not written down for the next scheduler")
		}
		return nil, err
	}
	c.unwritable.Store(false)
	recordWritesTotal.WithLabelValues(c.options.SchedulerName, resultSuccess).Inc()
	return text, nil
}

func (c *Cache) hasBegun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}

// isRecordRead reports whether the record of the last scheduler is known.
func (c *Cache) isRecordRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recordRead
}
