// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// profileSeconds is how much of a run is profiled, from its beginning.
const profileSeconds = 10

// profiled has ours profiled while it runs, if that is asked for. What it returns waits
// for the profile, which may last longer than the run.
func (w *World) profiled(ctx context.Context, c Candidate, r *running) (finish func() error) {
	if w.Profiles == "" || c.Name != Profiled {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- fetch(ctx, r.port+"/debug/pprof/profile?seconds="+strconv.Itoa(profileSeconds), filepath.Join(w.Profiles, w.workload.Name+".pprof"))
	}()
	return func() error {
		defer cancel()
		select {
		case err := <-done:
			return err
		case <-r.Done():
			return r.Err()
		}
	}
}

// fetch asks a scheduler's port and puts the answer into a file.
func fetch(ctx context.Context, url, path string) error {
	body, err := ask(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing what %s says: %w", url, err)
	}
	if _, err := io.Copy(file, body); err != nil {
		_ = file.Close()
		return fmt.Errorf("writing what %s says: %w", url, err)
	}
	return file.Close()
}

// ask asks a scheduler's port. Who asks closes the answer.
func ask(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", url, err)
	}
	response, err := scraper.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		_ = response.Body.Close()
		return nil, fmt.Errorf("asking %s: %s: %s", url, response.Status, said)
	}
	return response.Body, nil
}
