// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"
)

// between is how far apart two pages are taken to be read.
const between = 30 * time.Second

// dashboard is what of Grafana's format says what is asked.
type dashboard struct {
	Panels []panel `json:"panels"`
}

type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
	// Panels are those of a row that is folded.
	Panels []panel `json:"panels"`
}

// variables are what Grafana puts in place of its variables.
var variables = strings.NewReplacer("$__rate_interval", "2m", "$profile", ".*")

func queries(file string) (byTitle map[string][]string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("reading dashboard %s: %w", file, err)
	}
	byTitle = make(map[string][]string)
	var walk func(panels []panel)
	walk = func(panels []panel) {
		for _, p := range panels {
			for _, t := range p.Targets {
				byTitle[p.Title] = append(byTitle[p.Title], t.Expr)
			}
			walk(p.Panels)
		}
	}
	walk(d.Panels)
	if len(byTitle) == 0 {
		return nil, fmt.Errorf("dashboard %s asks nothing", file)
	}
	return byTitle, nil
}

// silentQueries returns the queries that return nothing, a line each, and how many there are.
func silentQueries(file string, pages []string) (silent []string, asked int, err error) {
	byTitle, err := queries(file)
	if err != nil {
		return nil, 0, err
	}
	h, at := newHistory(), time.Duration(0)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, 0, err
		}
		at += between
		if err := h.scrape(text, at, map[string]string{"job": "espalier", "instance": "promcheck"}); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", page, err)
		}
	}
	var errs error
	for title, queries := range byTitle {
		for _, query := range queries {
			asked++
			says, err := h.says(variables.Replace(query), at)
			if err != nil {
				errs = errors.Join(errs, fmt.Errorf("panel %q: %w", title, err))
			} else if !says {
				silent = append(silent, fmt.Sprintf("panel %q: %s", title, query))
			}
		}
	}
	return silent, asked, errs
}

// says reports whether a query returns a number. What is divided by nothing is none.
func (h *history) says(query string, at time.Duration) (bool, error) {
	result, err := h.ask(query, at)
	for _, s := range result {
		if !math.IsNaN(s.F) {
			return true, err
		}
	}
	return false, err
}
