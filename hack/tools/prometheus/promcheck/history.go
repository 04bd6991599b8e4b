// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// history is what a Prometheus would have in its storage, from the beginning of time on.
type history struct {
	engine *promql.Engine
	series map[string]*recorded
}

type recorded struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// sample is a number at a time, in milliseconds since the beginning of time.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

func newHistory() *history {
	return &history{
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute}),
		series: make(map[string]*recorded),
	}
}

// add notes what a series was at a time. Times must not go back.
func (h *history) add(of labels.Labels, at time.Duration, value float64) {
	key := of.String()
	if h.series[key] == nil {
		h.series[key] = &recorded{labels: of}
	}
	h.series[key].samples = append(h.series[key].samples, sample{at.Milliseconds(), value})
}

// scrape notes what a page of metrics says, as one that was read from a target.
func (h *history) scrape(page []byte, at time.Duration, target map[string]string) error {
	symbols := labels.NewSymbolTable()
	p := textparse.NewPromParser(page, symbols, false)
	for {
		entry, err := p.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading metrics: %w", err)
		case entry != textparse.EntrySeries:
			continue
		}
		var of labels.Labels
		p.Labels(&of)
		_, _, value := p.Series()
		builder := labels.NewBuilder(of)
		for name, text := range target {
			builder.Set(name, text)
		}
		h.add(builder.Labels(), at, value)
	}
}

// ask evaluates a query at a time.
func (h *history) ask(query string, at time.Duration) (promql.Vector, error) {
	q, err := h.engine.NewInstantQuery(context.Background(), h, nil, query, time.UnixMilli(at.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", query, err)
	}
	defer q.Close()
	result := q.Exec(context.Background())
	if result.Err != nil {
		return nil, fmt.Errorf("query %s: %w", query, result.Err)
	}
	switch v := result.Value.(type) {
	case promql.Vector:
		// It is the query's own, and gone when that is closed.
		return append(promql.Vector(nil), v...), nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	default:
		return nil, fmt.Errorf("query %s: it returns a %s: write one that returns a vector", query, result.Value.Type())
	}
}

// Querier is for the engine: all that is known, whatever the time.
func (h *history) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var found []storage.Series
		for _, r := range h.series {
			if selects(matchers, r.labels) {
				found = append(found, storage.NewListSeries(r.labels, r.samples))
			}
		}
		return &seriesSet{left: found}
	}}, nil
}

func selects(matchers []*labels.Matcher, of labels.Labels) bool {
	for _, m := range matchers {
		if !m.Matches(of.Get(m.Name)) {
			return false
		}
	}
	return true
}

// seriesSet is storage.SeriesSet over a slice.
type seriesSet struct {
	left []storage.Series
	now  storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.now, s.left = s.left[0], s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series                { return s.now }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// parse reads PromQL.
var parse = parser.NewParser(parser.Options{})
