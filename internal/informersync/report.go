// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

const (
	// Check is the name of the readiness check.
	Check = "informers"
	// looking is the time between two looks, and repeating that between two lines in the log about one kind.
	looking, repeating = time.Second, time.Minute
)

// Ready is the readiness check: its error names all kinds whose informers are not filled, but for optional ones that are not installed. Asked by its own
// path, it names these as well, and those whose informers will not be filled when their watches end.
func (t *Tracker) Ready(r *http.Request) error {
	all := t.unfilledNow()
	if ownPath(r) {
		all = t.Unfilled()
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New(join(all))
}

// Awaited is the readiness check of a process that goes on without some kinds, which do not keep it from being ready: its error names all others, at
// once where they were never read. Else a process that does nothing yet would be taken for one that does, and another stopped for it. Asked by its
// own path, it names those that the process goes on without as well.
func (t *Tracker) Awaited(r *http.Request) error {
	if ownPath(r) {
		if err := t.Ready(r); err != nil {
			return err
		}
	}
	if all := t.awaited(); len(all) > 0 {
		return errors.New(join(all))
	}
	return nil
}

func ownPath(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/"+Check) }

// join names some kinds, and why.
func join(all []Unfilled) string {
	texts := make([]string, len(all))
	for i, u := range all {
		texts[i] = u.String()
	}
	return strings.Join(texts, "; ")
}

// Run writes into the log which informers are not filled, until the context ends.
func (t *Tracker) Run(ctx context.Context) {
	ticker := t.clock.NewTicker(looking)
	defer ticker.Stop()
	said := make(map[schema.GroupVersionResource]time.Time)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			t.log(klog.FromContext(ctx), said)
		}
	}
}

// log writes what is new, and what was last said some time ago.
func (t *Tracker) log(logger klog.Logger, said map[schema.GroupVersionResource]time.Time) {
	now := t.clock.Now()
	still := make(map[schema.GroupVersionResource]bool)
	for _, u := range t.Unfilled() {
		still[u.Resource] = true
		if last, is := said[u.Resource]; is && now.Sub(last) < repeating {
			continue
		}
		said[u.Resource] = now
		logger.Error(nil, "Informer is not filled", "resource", u.Resource.Resource, "groupVersion", u.Resource.GroupVersion().String(),
			"for", now.Sub(u.Since).Round(time.Second).String(), "reason", u.Reason, "message", u.Message)
	}
	for of := range said {
		if !still[of] {
			delete(said, of)
			logger.Info("Informer is filled, or no longer needed", "resource", of.Resource, "groupVersion", of.GroupVersion().String())
		}
	}
}

var unsynced = prometheus.NewDesc(
	"espalier_unsynced_informers",
	"1 for each kind whose informer has not been filled for ten seconds, no longer learns of changes, or will not when its watch ends: there is no series for one that is filled. The reason is that of the API server's answer, such as NotFound or Forbidden, or NoAnswer, or Reading if the answer stands still.",
	[]string{"group", "version", "resource", "reason"}, nil,
)

// Describe and Collect have the informers that are not filled as a metric.
func (*Tracker) Describe(into chan<- *prometheus.Desc) { into <- unsynced }

// Collect is for the registry.
func (t *Tracker) Collect(into chan<- prometheus.Metric) {
	for _, u := range t.Unfilled() {
		of := u.Resource
		into <- prometheus.MustNewConstMetric(unsynced, prometheus.GaugeValue, 1, of.Group, of.Version, of.Resource, u.Reason)
	}
}
