// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// An informer of a kind that may be stood in for goes on without it after ten seconds, whatever is wrong, and has its objects when they can be read.
func TestStandIn(t *testing.T) {
	for name, wrong := range map[string]http.HandlerFunc{
		"no right":     func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusForbidden, forbidden) },
		"no such kind": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 page not found", http.StatusNotFound) },
		"a fault": func(w http.ResponseWriter, _ *http.Request) {
			say(w, http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcd"}`)
		},
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var well atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !well.Load() {
					wrong(w, r)
					return
				}
				if r.URL.Query().Get("sendInitialEvents") == "" {
					t.Errorf("it is asked %s: only streams of all objects are expected", r.URL)
				}
				say(w, http.StatusOK, `{"type":"ADDED","object":{"kind":"DeviceTaintRule","apiVersion":"resource.k8s.io/v1","metadata":{"name":"a","resourceVersion":"7"}}}
{"type":"BOOKMARK","object":{"kind":"DeviceTaintRule","apiVersion":"resource.k8s.io/v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}
`)
				<-r.Context().Done()
			}))
			t.Cleanup(server.Close)
			// It is over before the first answer: what is waited for here is the informer's own pause between two questions.
			steps := clocktesting.NewFakeClock(time.Unix(1000, 0))
			tracker := New(steps, Options{StandIn: func(of schema.GroupVersionResource) bool { return of == rules }})
			tracker.Fail(rules, NoAnswer, "no answer")
			steps.Step(timeout)
			config := &rest.Config{Host: server.URL}
			config.Wrap(tracker.Wrap)
			factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
			lister := factory.Resource().V1().DeviceTaintRules().Lister()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if name == "no answer" {
				go func() { // two questions, a stream and a list, which have a moment each
					for range 2 {
						for !steps.HasWaiters() && ctx.Err() == nil {
							time.Sleep(time.Millisecond)
						}
						steps.Step(moment)
					}
				}()
			}
			factory.StartWithContext(ctx)
			if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
				t.Fatal(err)
			}
			missing := tracker.Missing(rules.Group)
			if len(missing) != 1 || missing[0].Resource != rules || missing[0].Message == "" || tracker.Ready(nil) == nil {
				t.Fatalf("missing is %v, and not ready is %v", missing, tracker.Ready(nil))
			}
			if other := tracker.Missing("storage.k8s.io"); len(other) > 0 {
				t.Errorf("of another group there is missing %v", other)
			}
			well.Store(true)
			until(ctx, t, func() error {
				if all, err := lister.List(labels.Everything()); err != nil || len(all) != 1 {
					return fmt.Errorf("the informer has %d objects, %w", len(all), err)
				}
				return tracker.Ready(nil)
			})
			if missing := tracker.Missing(rules.Group); len(missing) != 1 || missing[0].Reason != "Reading" {
				t.Errorf("what has just been read counts at once: %v", missing)
			}
			steps.Step(settling)
			if missing := tracker.Missing(rules.Group); len(missing) > 0 {
				t.Errorf("missing is %v", missing)
			}
		})
	}
}

// The stand-in comes after ten seconds, and not if the kind can be read before.
func TestStandInTakesTime(t *testing.T) {
	for name, tc := range map[string]struct {
		wellAfter, want time.Duration
		text            string
	}{
		"never well": {time.Hour, timeout, `{"metadata":{"resourceVersion":"0"},"items":[]}`},
		"well soon":  {3 * time.Second, 4 * time.Second, "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(t, Options{})
				a.tracker = New(clock.RealClock{}, Options{StandIn: func(schema.GroupVersionResource) bool { return true }})
				begin := time.Now()
				a.answers[list] = func(r *http.Request) (*http.Response, error) {
					if time.Since(begin) < tc.wellAfter {
						return reply(r, http.StatusForbidden, forbidden), nil
					}
					return reply(r, http.StatusOK, "{}"), nil
				}
				code, text, err := a.ask(t.Context(), list)
				if err != nil || code != http.StatusOK || text != tc.text || time.Since(begin) != tc.want {
					t.Errorf("after %v it is answered %d %q, %v", time.Since(begin), code, text, err)
				}
				if missing := a.tracker.Missing(rules.Group); (len(missing) > 0) != (tc.want == timeout) {
					t.Errorf("missing is %v", missing)
				}
			})
		})
	}
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
	w.(http.Flusher).Flush()
}

// until polls; nil ends it.
func until(ctx context.Context, t *testing.T, check func() error) {
	t.Helper()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
