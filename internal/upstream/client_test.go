// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A question does not stand behind the bindings in their limit of requests.
func TestClientHasALimitOfItsOwn(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: 0.001, Burst: 1}
	binds, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	asks, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	get := func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Pods("ns").Get(ctx, "p", metav1.GetOptions{})
		return err
	}
	if err := get(binds); !apierrors.IsNotFound(err) {
		t.Fatalf("the first request: %v", err)
	}
	if err := get(binds); err == nil || apierrors.IsNotFound(err) {
		t.Fatalf("the second request was let through: %v", err)
	}
	if err := get(asks); !apierrors.IsNotFound(err) {
		t.Errorf("a question while the limit of bindings is reached: %v", err)
	}
}

// Whoever uses the scheduler's configuration later is not taken for the one who asks.
func TestClientLeavesTheConfigurationAlone(t *testing.T) {
	config := &rest.Config{Host: "127.0.0.1", UserAgent: "kube-scheduler"}
	if _, err := NewClient(config); err != nil {
		t.Fatal(err)
	}
	if config.UserAgent != "kube-scheduler" {
		t.Errorf("the user agent of the configuration is %q by now", config.UserAgent)
	}
}
