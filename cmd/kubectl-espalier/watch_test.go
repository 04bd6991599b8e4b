// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// What changes while the pods are listed for the watch is no change to it: a drawing of before would stay as it is.
func TestWatchKnowsThePodsBeforeItDraws(t *testing.T) {
	listed, drawn := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			http.Error(w, "it is asked for a list", http.StatusBadRequest)
			return
		}
		select {
		case <-drawn:
		case <-time.After(300 * time.Millisecond):
		}
		close(listed)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}))
	t.Cleanup(server.Close)
	kube := genericclioptions.NewConfigFlags(false)
	kube.APIServer = &server.URL
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	over := errors.New("over")
	err := (&common{kube: kube}).watch(cmd, "ns", func(io.Writer) error {
		close(drawn)
		select {
		case <-listed:
			return over
		default:
			return errors.New("it draws before it knows the pods")
		}
	})
	if !errors.Is(err, over) {
		t.Error(err)
	}
}

// Where the pods cannot be listed the drawing says why, and is not waited for in silence.
func TestWatchDrawsWithoutThePods(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", http.StatusInternalServerError) }))
	t.Cleanup(server.Close)
	kube := genericclioptions.NewConfigFlags(false)
	kube.APIServer = &server.URL
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	broken, begin := errors.New("the API server is broken"), time.Now()
	if err := (&common{kube: kube}).watch(cmd, "ns", func(io.Writer) error { return broken }); !errors.Is(err, broken) || time.Since(begin) >= listTimeout {
		t.Errorf("it ended after %s with %v", time.Since(begin), err)
	}
}
