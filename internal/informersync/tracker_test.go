// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-scheduler/espalier/pkg/placement/placementtest"
)

// must ends the test if there is an error.
var must = placementtest.Must

// round is a transport.
type round func(*http.Request) (*http.Response, error)

func (f round) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var (
	rules = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}
	pods  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

const (
	rulesPath = "/apis/resource.k8s.io/v1/devicetaintrules"
	stream    = "?watch=true&sendInitialEvents=true&resourceVersion=0"
	list      = "?resourceVersion=0"
	changes   = "?watch=true&resourceVersion=7"

	forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"devicetaintrules.resource.k8s.io is forbidden: User \"s\" cannot list them"}`
	ended     = `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}`
)

// api is an API server of which each address has an answer, and a tracker before it.
type api struct {
	t       *testing.T
	clock   *clocktesting.FakeClock
	tracker *Tracker
	answers map[string]func(*http.Request) (*http.Response, error)
}

func newAPI(t *testing.T, o Options) *api {
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	return &api{t, c, New(c, o), make(map[string]func(*http.Request) (*http.Response, error))}
}

func (a *api) say(query string, code int, text string) {
	a.answers[query] = func(r *http.Request) (*http.Response, error) { return reply(r, code, text), nil }
}

// ask asks for rules, and reads the whole answer.
func (a *api) ask(ctx context.Context, query string) (int, string, error) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://host"+rulesPath+query, http.NoBody)
	must(a.t, err)
	answer, err := a.tracker.Wrap(round(func(r *http.Request) (*http.Response, error) { return a.answers["?"+r.URL.RawQuery](r) })).RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(answer.Body)
	must(a.t, err)
	return answer.StatusCode, string(text), answer.Body.Close()
}

// asks asks for rules, and wants an answer.
func (a *api) asks(query string) {
	a.t.Helper()
	_, _, err := a.ask(a.t.Context(), query)
	must(a.t, err)
}

// at is a question of the readiness checks at a path.
func at(path string) *http.Request { return &http.Request{URL: &url.URL{Path: path}} }

// want wants the readiness check to say this at its own path, "" for nothing.
func (a *api) want(text string) {
	a.t.Helper()
	err := a.tracker.Ready(at("/readyz/informers"))
	if text == "" && err != nil || text != "" && (err == nil || err.Error() != text) {
		a.t.Errorf("it says %v, want %q", err, text)
	}
}

func TestRequests(t *testing.T) {
	for address, want := range map[string]request{
		"/api/v1/pods?resourceVersion=0":                    {of: pods, lists: true},
		"/proxy/api/v1/namespaces/a/pods?watch=1":           {of: pods, namespaced: true},
		rulesPath + stream:                                  {of: rules, streams: true},
		"/api/v1/namespaces?watch=true":                     {of: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}},
		rulesPath:                                           {},
		"/api/v1/namespaces/a/pods/p?watch=true":            {},
		"/api/v1/namespaces/a/pods/p/log?resourceVersion=0": {},
		"/apis/resource.k8s.io/v1?resourceVersion=0":        {},
		"/version?resourceVersion=0":                        {},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://host"+address, http.NoBody)
		must(t, err)
		got, is := readRequest(r)
		if is != (want != request{}) || is && got != want {
			t.Errorf("%s: %+v, %t, want %+v", address, got, is, want)
		}
		r.Method = http.MethodDelete
		if _, is := readRequest(r); is {
			t.Errorf("%s: to delete is no question of an informer", address)
		}
	}
}

// What is refused is said after ten seconds, in the API server's words, until it is answered.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		code       int
		text, want string
		reason     string
	}{
		"no right":     {http.StatusForbidden, forbidden, `devicetaintrules.resource.k8s.io is forbidden: User "s" cannot list them`, "Forbidden"},
		"no such kind": {http.StatusNotFound, "404 page not found", "the server could not find the requested resource (get devicetaintrules.resource.k8s.io)", "NotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, Options{})
			refuse := func() {
				t.Helper()
				for _, query := range []string{stream, list} {
					a.say(query, tc.code, tc.text)
					if code, text, err := a.ask(t.Context(), query); err != nil || code != tc.code || text != tc.text {
						t.Errorf("the client gets %d %q, %v", code, text, err)
					}
				}
			}
			refuse()
			a.clock.Step(timeout - time.Second)
			refuse()
			a.want("")
			a.clock.Step(time.Second)
			a.want("devicetaintrules of resource.k8s.io/v1: " + tc.want)
			series := "# HELP espalier_unsynced_informers " + help(t) + "\n# TYPE espalier_unsynced_informers gauge\n" +
				`espalier_unsynced_informers{group="resource.k8s.io",reason="` + tc.reason + `",resource="devicetaintrules",version="v1"} 1` + "\n"
			if err := testutil.CollectAndCompare(a.tracker, strings.NewReader(series)); err != nil {
				t.Error(err)
			}
			a.say(stream, http.StatusOK, ended)
			a.asks(stream)
			a.want("")
			if n := testutil.CollectAndCount(a.tracker); n != 0 {
				t.Errorf("there are %d series", n)
			}
		})
	}
}

// help is the text of the metric.
func help(t *testing.T) string {
	t.Helper()
	_, after, is := strings.Cut(unsynced.String(), `help: "`)
	text, _, ends := strings.Cut(after, `"`)
	if !is || !ends {
		t.Fatal(unsynced.String())
	}
	return text
}

// A stream that has begun has not filled the informer, as long as it has not sent all objects.
func TestStreamsThatEndEarly(t *testing.T) {
	a := newAPI(t, Options{})
	a.say(stream, http.StatusOK, `{"type":"ADDED"}`)
	for range 2 {
		a.asks(stream)
		a.clock.Step(timeout / 2)
	}
	a.want("devicetaintrules of resource.k8s.io/v1: no answer")
}

// An answer of which more arrives is no silence, and one that stands still is.
func TestReading(t *testing.T) {
	for name, query := range map[string]string{"stream": stream, "list": list} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, Options{})
			sent, sends := io.Pipe()
			a.answers[query] = func(r *http.Request) (*http.Response, error) {
				answer := reply(r, http.StatusOK, "")
				answer.Body = sent
				return answer, nil
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _, _ = a.ask(t.Context(), query)
			}()
			for range 3 {
				_, err := io.WriteString(sends, `{"type":"ADDED"}`)
				must(t, err)
				a.clock.Step(timeout - time.Second)
				a.want("")
			}
			_, err := io.WriteString(sends, ended)
			must(t, err)
			_ = sends.Close()
			<-done
			a.clock.Step(time.Hour)
			a.want("")
		})
	}
	a := newAPI(t, Options{})
	a.tracker.asked(rules, false)
	_, _ = a.tracker.reads(rules)
	a.clock.Step(timeout)
	a.want("devicetaintrules of resource.k8s.io/v1: its objects are being read")
}

// Who waits for a kind is not ready from the start, until it is read. A kind that need not be installed is not waited for, and is named when it fails.
func TestAwaited(t *testing.T) {
	a := newAPI(t, Options{Absent: func(of schema.GroupVersionResource) bool { return of == pods }})
	want := func(text string) {
		t.Helper()
		err := a.tracker.Awaited(at("/readyz"))
		if text == "" && err != nil || text != "" && (err == nil || err.Error() != text) {
			t.Errorf("it says %v, want %q", err, text)
		}
	}
	a.tracker.asked(pods, false)
	want("")
	a.say(list, http.StatusForbidden, forbidden)
	a.asks(list)
	const named = `devicetaintrules of resource.k8s.io/v1: devicetaintrules.resource.k8s.io is forbidden: User "s" cannot list them`
	want(named)
	a.say(list, http.StatusOK, "{}")
	a.asks(list)
	want("")
	a.say(list, http.StatusForbidden, forbidden)
	a.asks(list)
	want("") // what was read holds for a while
	a.tracker.read(pods)
	a.clock.Step(timeout)
	want(named)
}

// Of an error that is no status of the API server only the beginning is told.
func TestLongErrors(t *testing.T) {
	a := newAPI(t, Options{})
	page := strings.Repeat("x", 1<<20)
	a.say(list, http.StatusBadGateway, page)
	if code, text, err := a.ask(t.Context(), list); err != nil || code != http.StatusBadGateway || text != page {
		t.Errorf("the client gets %d and %d bytes, %v", code, len(text), err)
	}
	a.clock.Step(timeout)
	if n := len(a.tracker.Ready(at("/readyz")).Error()); n > 4<<10 {
		t.Errorf("%d bytes are told", n)
	}
}

// The mark is found wherever the connection cuts the stream.
func TestMarkInTwoParts(t *testing.T) {
	for at := range len(ended) {
		found := 0
		b := &body{ReadCloser: io.NopCloser(io.MultiReader(strings.NewReader(ended[:at]), strings.NewReader(ended[at:]))), read: func() { found++ }, moved: func() {}, lost: func() {}}
		if _, err := io.ReadAll(b); err != nil || found != 1 {
			t.Errorf("cut at %d it is found %d times, %v", at, found, err)
		}
	}
}

// What is not answered at all is said as well, and one that its informer gives up is not.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, Options{})
		a.answers[stream] = func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _, _ = a.ask(ctx, stream) }()
		synctest.Wait()
		a.clock.Step(timeout)
		a.want("devicetaintrules of resource.k8s.io/v1: no answer")
		cancel()
		synctest.Wait()
		a.want("")
	})
}

// An informer that was filled is named when it learns of no changes: the kind or the right is gone.
func TestGoneLater(t *testing.T) {
	a := newAPI(t, Options{})
	a.say(list, http.StatusOK, "{}")
	a.say(changes, http.StatusOK, "")
	a.asks(list)
	a.asks(changes)
	a.clock.Step(time.Hour)
	a.want("")
	a.say(changes, http.StatusGone, "too old")
	a.asks(changes)
	a.clock.Step(timeout)
	a.want("") // so old changes are not kept: that is no fault

	a.say(changes, http.StatusForbidden, forbidden)
	a.asks(changes)
	a.asks(list) // the right to list is left
	a.clock.Step(timeout)
	a.want(`devicetaintrules of resource.k8s.io/v1: devicetaintrules.resource.k8s.io is forbidden: User "s" cannot list them`)
	a.say(changes, http.StatusOK, "")
	a.asks(changes)
	a.want("")
}

// Of a kind that need not be installed it is not said that it is not, but that it may not be read.
func TestAbsent(t *testing.T) {
	a := newAPI(t, Options{Absent: func(of schema.GroupVersionResource) bool { return of == rules }})
	for code, want := range map[int]string{http.StatusNotFound: "", http.StatusServiceUnavailable: "devicetaintrules of resource.k8s.io/v1: overloaded"} {
		a.say(list, code, statusText(code))
		a.asks(list)
		a.clock.Step(timeout)
		a.want(want)
		a.tracker.Forget(rules)
	}
}

func statusText(code int) string {
	reason := map[int]string{http.StatusNotFound: "NotFound", http.StatusServiceUnavailable: "ServiceUnavailable"}[code]
	return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `","message":"overloaded"}`
}

// The log says it at the start, each minute, and at the end.
func TestLog(t *testing.T) {
	a := newAPI(t, Options{})
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	said := make(map[schema.GroupVersionResource]time.Time)
	a.tracker.Fail(rules, "Forbidden", "no right")
	for range 130 {
		a.clock.Step(time.Second)
		a.tracker.log(logger, said)
	}
	a.tracker.Forget(rules)
	a.tracker.log(logger, said)
	a.tracker.log(logger, said)
	text := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if n := strings.Count(text, "Informer is not filled"); n != 3 || strings.Count(text, "Informer is filled, or no longer needed") != 1 {
		t.Errorf("it is said %d times:\n%s", n, text)
	}
	if !strings.Contains(text, `resource="devicetaintrules" groupVersion="resource.k8s.io/v1" for="10s" reason="Forbidden" message="no right"`) {
		t.Error(text)
	}
}
