// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// An informer of a kind that may be stood in for goes on without it, whatever is wrong, and the process is ready. When the kind can be read the process
// ends: until then what needs the kind waits, however long ago it was read.
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
			var listed atomic.Bool
			well := make(chan struct{})
			// It is over before the first answer: what is waited for here is the informer's own pause between two questions.
			steps := clocktesting.NewFakeClock(time.Unix(1000, 0))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				streams := r.URL.Query().Get("sendInitialEvents") != ""
				if !listed.Load() { // a stream first, and a list after it
					listed.Store(!streams)
					if name == "no answer" {
						steps.Step(answerTimeout)
					}
					wrong(w, r)
					return
				}
				select {
				case <-well:
				case <-r.Context().Done():
				}
				if !streams {
					t.Errorf("it is asked %s: only streams of all objects are expected", r.URL)
				}
				say(w, http.StatusOK, `{"type":"ADDED","object":{"kind":"DeviceTaintRule","apiVersion":"resource.k8s.io/v1","metadata":{"name":"a","resourceVersion":"7"}}}
{"type":"BOOKMARK","object":{"kind":"DeviceTaintRule","apiVersion":"resource.k8s.io/v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}
`)
				<-r.Context().Done()
			}))
			t.Cleanup(server.Close)
			tracker := New(steps, Options{StandIn: func(of schema.GroupVersionResource) bool { return of == rules }})
			tracker.Fail(rules, NoAnswer, "no answer")
			steps.Step(timeout)
			config := &rest.Config{Host: server.URL}
			config.Wrap(tracker.Wrap)
			factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
			lister := factory.Resource().V1().DeviceTaintRules().Lister()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			factory.StartWithContext(ctx)
			must(t, factory.WaitForCacheSyncWithContext(ctx).AsError())
			missing := tracker.Missing(rules.Group)
			if len(missing) != 1 || missing[0].Resource != rules || missing[0].Message == "" || tracker.Ready(at("/readyz")) == nil {
				t.Fatalf("missing is %v, and not ready is %v", missing, tracker.Ready(at("/readyz")))
			}
			if err := tracker.Awaited(at("/readyz")); err != nil {
				t.Errorf("the process goes on, and is not ready: %v", err)
			}
			if err := tracker.Awaited(at("/readyz/informers")); err == nil {
				t.Error("nothing is named")
			}
			if other := tracker.Missing("storage.k8s.io"); len(other) > 0 {
				t.Errorf("of another group there is missing %v", other)
			}
			close(well)
			until(ctx, t, func() error {
				if all, err := lister.List(labels.Everything()); err != nil || len(all) != 1 {
					return fmt.Errorf("the informer has %d objects, %w", len(all), err)
				}
				return tracker.Ready(at("/readyz"))
			})
			steps.Step(time.Hour)
			if missing := tracker.Missing(rules.Group); len(missing) != 1 || missing[0].Reason != Reading {
				t.Errorf("what was read late counts: %v", missing)
			}
			if err := tracker.Recovered(ctx); err == nil || !strings.HasPrefix(err.Error(), "devicetaintrules of resource.k8s.io/v1 can be read") {
				t.Errorf("the process ends with %v", err)
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

// A kind that is read in time ends no process.
func TestReadInTime(t *testing.T) {
	a := newAPI(t, Options{StandIn: func(schema.GroupVersionResource) bool { return true }})
	a.say(list, http.StatusOK, "{}")
	for range 2 {
		a.asks(list)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := a.tracker.Recovered(ended); err != nil || len(a.tracker.Missing(rules.Group)) > 0 {
		t.Errorf("it ends with %v", err)
	}
}

// A slow answer is waited for, before and after the stand-in.
func TestSlowAnswers(t *testing.T) {
	for name, stoodIn := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(t, Options{})
				a.tracker = New(clock.RealClock{}, Options{StandIn: func(schema.GroupVersionResource) bool { return true }})
				if stoodIn {
					a.tracker.Fail(rules, NoAnswer, "no answer")
					a.tracker.with(rules, func(k *kind) { k.stoodIn = true })
					time.Sleep(time.Hour)
				}
				a.answers[list] = func(r *http.Request) (*http.Response, error) {
					select {
					case <-time.After(59 * time.Second):
						return reply(r, http.StatusOK, "{}"), nil
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
				}
				if code, text, err := a.ask(t.Context(), list); err != nil || code != http.StatusOK || text != "{}" {
					t.Errorf("it is answered %d %q, %v", code, text, err)
				}
			})
		})
	}
}

// Nothing that is asked at each try of a pod costs anything while all kinds are read. Else the kinds have an order.
func TestMissing(t *testing.T) {
	tracker := New(clock.RealClock{}, Options{})
	const group = "storage.k8s.io"
	for _, name := range []string{"c", "a", "b", "d"} {
		tracker.read(schema.GroupVersionResource{Group: group, Version: "v1", Resource: name})
	}
	if n := testing.AllocsPerRun(10, func() { tracker.Missing(group) }); n > 0 {
		t.Errorf("there are %v allocations", n)
	}
	tracker.Fail(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "e"}, "Forbidden", "no right")
	for of := range tracker.kinds {
		tracker.with(of, func(k *kind) { k.stoodIn = of.Resource != "d" })
	}
	text := ""
	for _, u := range tracker.Missing(group) {
		text += u.Resource.Resource + " " + u.Reason + ", "
	}
	if want := "a Reading, b Reading, c Reading, e Forbidden, "; text != want {
		t.Errorf("missing is %q, want %q", text, want)
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

func rule(group, resource, verb string, names ...string) authorizationv1.ResourceRule {
	return authorizationv1.ResourceRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"list", verb}, ResourceNames: names}
}

// A watch that begins proves its right, whatever the rules said.
func TestWatchesProveTheirRight(t *testing.T) {
	a := newAPI(t, Options{})
	a.say(changes, http.StatusOK, "")
	a.tracker.asked(rules, false)
	a.tracker.entitled(rights{SubjectRulesReviewStatus: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}}, rights{asked: a.clock.Now()})
	a.tracker.read(rules)
	a.clock.Step(timeout)
	if err := a.tracker.Ready(at("/readyz/informers")); err == nil {
		t.Error("nothing is named")
	}
	a.asks(changes)
	a.want("")
}

// A right that is taken away while its watch goes on is named, and no more when it is given back. Where the answer does not say all, the kind
// decides.
func TestRightsTakenAway(t *testing.T) {
	const named = "devicetaintrules.resource.k8s.io may no longer be watched, for want of the right in the whole cluster: its changes are learned until the watch that is open ends"
	all := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{rule("", "pods", "watch"), rule("*", "*", "*")}}
	allowed := authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	some := func(rules ...authorizationv1.ResourceRule) authorizationv1.SubjectRulesReviewStatus {
		return authorizationv1.SubjectRulesReviewStatus{ResourceRules: rules}
	}
	for name, tc := range map[string]struct {
		before, after authorizationv1.SubjectRulesReviewStatus
		err           error
		path, want    string
		of            authorizationv1.SubjectAccessReviewStatus // what is said of the one kind
	}{
		"taken away":             {before: all, after: some(rule("", "devicetaintrules", "watch"), rule("resource.k8s.io", "pods", "watch")), want: named, of: allowed},
		"another verb is left":   {before: all, after: some(rule("resource.k8s.io", "devicetaintrules", "get")), want: named},
		"some names are left":    {before: all, after: some(rule("resource.k8s.io", "devicetaintrules", "watch", "one")), want: named},
		"it is there":            {before: all, after: some(rule("resource.k8s.io", "devicetaintrules", "watch"))},
		"never seen":             {before: some(), after: some()},
		"a webhook allows it":    {before: all, after: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, of: allowed},
		"a webhook does not":     {before: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, after: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, want: named},
		"a webhook is gone":      {before: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, after: authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, of: authorizationv1.SubjectAccessReviewStatus{EvaluationError: "no answer"}},
		"its role is gone":       {before: all, after: authorizationv1.SubjectRulesReviewStatus{EvaluationError: "no such role"}, want: named},
		"no answer":              {before: all, after: some(), err: errors.New("forbidden")},
		"those of one namespace": {before: all, after: some(), path: "/apis/resource.k8s.io/v1/namespaces/a/devicetaintrules"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker := New(clock.RealClock{}, Options{})
				a := &api{t: t, tracker: tracker}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://host"+cmp.Or(tc.path, rulesPath)+stream, http.NoBody)
				must(t, err)
				answer, err := tracker.Wrap(round(func(r *http.Request) (*http.Response, error) { return reply(r, http.StatusOK, ended), nil })).RoundTrip(r)
				must(t, err)
				defer answer.Body.Close()
				_, _ = answer.Body.Read(make([]byte, 1000))
				status, fails, one := tc.before, error(nil), allowed
				go tracker.FollowRights(t.Context(), func(_ context.Context, r *authorizationv1.SelfSubjectRulesReview, _ metav1.CreateOptions) (*authorizationv1.SelfSubjectRulesReview, error) {
					r.Status = status
					return r, fails
				}, func(_ context.Context, r *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error) {
					r.Status = one
					r.Status.Allowed = one.Allowed && r.Spec.ResourceAttributes.Resource == rules.Resource && r.Spec.ResourceAttributes.Verb == "watch"
					return r, nil
				})
				after := func(d time.Duration, want string) {
					t.Helper()
					time.Sleep(d)
					synctest.Wait()
					a.want(want)
				}
				after(asking, "")
				status, fails, one = tc.after, tc.err, tc.of
				want := tc.want
				if want != "" {
					want = "devicetaintrules of resource.k8s.io/v1: " + want
				}
				after(timeout, "")
				after(asking, want)
				for _, check := range []func(*http.Request) error{tracker.Ready, tracker.Awaited} {
					if err := check(at("/readyz")); err != nil {
						t.Errorf("it is not ready: %v", err)
					}
				}
				status, fails, one = tc.before, nil, allowed
				after(asking, "")
			})
		})
	}
}
