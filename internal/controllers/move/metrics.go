// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// reading is how long a look at the cache may take while metrics are read.
const reading = 5 * time.Second

// meters are the metrics of Moves that are counted; those that have not ended are looked up.
type meters struct {
	ended, below *prometheus.CounterVec
}

func newMeters() *meters {
	m := &meters{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_moves_total", Help: "Moves that have ended, by their reason and what came of them: Done, Undone or Failed.",
		}, []string{"reason", "outcome"}),
		below: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_moves_below_seconds_total", Help: "Seconds in which fewer pods of a ReplicaSet were ready than it wants while one of them was moved, by the reason of the Move.",
		}, []string{"reason"}),
	}
	// What has never happened is 0, and not missing.
	for _, reason := range reasons {
		m.below.WithLabelValues(string(reason))
		for phase := range outcomes {
			m.ended.WithLabelValues(string(reason), string(phase))
		}
	}
	return m
}

// reasons are all reasons of Moves.
var reasons = []placementv1alpha1.MoveReason{
	placementv1alpha1.MoveDrain, placementv1alpha1.MoveRebalance, placementv1alpha1.MoveRestart, placementv1alpha1.MoveDisconnect, placementv1alpha1.MoveLease,
}

// Active are the Moves that have not ended, as metrics.
type Active struct {
	// Client lists from a cache.
	Client client.Reader
	Clock  clock.PassiveClock
}

var (
	activeMoves  = prometheus.NewDesc("espalier_moves_active", "Moves that have not ended, by their reason.", []string{"reason"}, nil)
	overdueMoves = prometheus.NewDesc("espalier_moves_overdue", "Moves that have not ended though their deadline is over, by their reason.", []string{"reason"}, nil)
)

// Describe is that of prometheus.Collector.
func (a *Active) Describe(to chan<- *prometheus.Desc) {
	to <- activeMoves
	to <- overdueMoves
}

// Collect is that of prometheus.Collector. Where the cache cannot be read there are none of these metrics.
func (a *Active) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), reading)
	defer cancel()
	var moves placementv1alpha1.MoveList
	if err := a.Client.List(ctx, &moves); err != nil {
		return
	}
	active, overdue := make(map[placementv1alpha1.MoveReason]int), make(map[placementv1alpha1.MoveReason]int)
	for i := range moves.Items {
		m := &moves.Items[i]
		if m.Status.Phase.Ended() {
			continue
		}
		active[m.Spec.Reason]++
		if Busy(m) && isOverdue(m, a.Clock.Now()) {
			overdue[m.Spec.Reason]++
		}
	}
	for _, reason := range reasons {
		to <- prometheus.MustNewConstMetric(activeMoves, prometheus.GaugeValue, float64(active[reason]), string(reason))
		to <- prometheus.MustNewConstMetric(overdueMoves, prometheus.GaugeValue, float64(overdue[reason]), string(reason))
	}
}

// isOverdue reports that a Move has had the time that it has.
func isOverdue(move *placementv1alpha1.Move, now time.Time) bool {
	return now.Sub(move.CreationTimestamp.Time) > time.Duration(move.Spec.DeadlineSeconds)*time.Second
}

// register adds the metrics to those that controllers of a process have.
func (r *Reconciler) register() error {
	r.meters = newMeters()
	for _, c := range []prometheus.Collector{r.meters.ended, r.meters.below, &Active{Client: r.Client, Clock: r.Clock}} {
		if err := metrics.Registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}

// look is the last one at a Move that has not ended: when it was, and how many pods were wanted at the first one.
type look struct {
	at     time.Time
	wanted int
}

// looks are those of all Moves that have not ended. The zero value has none.
type looks struct {
	mu   sync.Mutex // guards last
	last map[client.ObjectKey]look
}

// note notes a look at a Move, and returns the last one with the least number of pods that has been wanted since the first. It is false if
// this is the first.
func (l *looks) note(move client.ObjectKey, at time.Time, wanted int) (last look, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[client.ObjectKey]look)
	}
	if last, known = l.last[move]; known {
		wanted = min(wanted, last.wanted)
	}
	l.last[move] = look{at, wanted}
	return look{last.at, wanted}, known
}

// forget drops the look at a Move.
func (l *looks) forget(move client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, move)
}

// len is the number of Moves that have not ended.
func (l *looks) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.last)
}

// meter counts the time since the last look at a Move, if too few pods are ready. Pods that are wanted since are no loss, and neither is
// one that was not ready before it was moved. Where a node does not answer the pods on it are lost, Move or not.
func (r *Reconciler) meter(o *objects, f *facts, now time.Time) {
	last, known := r.looked.note(client.ObjectKeyFromObject(o.move), now, f.wanted)
	ready := f.ready
	if f.holder == ours && !f.leaving && o.pod != nil && readyFor(o.pod, 0, now) {
		ready++
	}
	begun := f.phase != "" && f.phase != placementv1alpha1.MovePlanned
	if known && begun && !f.first && !f.setGone && !f.unready && !f.disconnect && ready < last.wanted {
		r.meters.below.WithLabelValues(string(o.move.Spec.Reason)).Add(now.Sub(last.at).Seconds())
	}
}
