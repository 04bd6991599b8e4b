// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// reviewer answers each question about the rights.
type reviewer func() (authorizationv1.SubjectRulesReviewStatus, error)

func (r reviewer) Create(context.Context, *authorizationv1.SelfSubjectRulesReview, metav1.CreateOptions) (*authorizationv1.SelfSubjectRulesReview, error) {
	status, err := r()
	return &authorizationv1.SelfSubjectRulesReview{Status: status}, err
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
	if _, _, err := a.ask(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	a.want("")
}

// A right that is taken away while its watch goes on is named, and no more when it is given back. What the answer does not say is not taken for a
// right that is not there.
func TestRightsTakenAway(t *testing.T) {
	const named = "devicetaintrules.resource.k8s.io may no longer be watched, for want of the right in the whole cluster: its changes are learned until the watch that is open ends"
	all := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{rule("", "pods", "watch"), rule("*", "*", "*")}}
	some := func(rules ...authorizationv1.ResourceRule) authorizationv1.SubjectRulesReviewStatus {
		return authorizationv1.SubjectRulesReviewStatus{ResourceRules: rules}
	}
	for name, tc := range map[string]struct {
		before, after authorizationv1.SubjectRulesReviewStatus
		err           error
		path, want    string
	}{
		"taken away":             {all, some(rule("", "devicetaintrules", "watch"), rule("resource.k8s.io", "pods", "watch")), nil, rulesPath, named},
		"another verb is left":   {all, some(rule("resource.k8s.io", "devicetaintrules", "get")), nil, rulesPath, named},
		"some names are left":    {all, some(rule("resource.k8s.io", "devicetaintrules", "watch", "one")), nil, rulesPath, named},
		"it is there":            {all, some(rule("resource.k8s.io", "devicetaintrules", "watch")), nil, rulesPath, ""},
		"never seen":             {some(), some(), nil, rulesPath, ""},
		"not all rules known":    {all, authorizationv1.SubjectRulesReviewStatus{Incomplete: true}, nil, rulesPath, ""},
		"an error":               {all, authorizationv1.SubjectRulesReviewStatus{EvaluationError: "no such role"}, nil, rulesPath, ""},
		"no answer":              {all, some(), errors.New("forbidden"), rulesPath, ""},
		"those of one namespace": {all, some(), nil, "/apis/resource.k8s.io/v1/namespaces/a/devicetaintrules", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker := New(clock.RealClock{}, Options{})
				a := &api{t: t, tracker: tracker}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://host"+tc.path+stream, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := tracker.Wrap(round(func(r *http.Request) (*http.Response, error) { return reply(r, http.StatusOK, ended), nil })).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				_, _ = answer.Body.Read(make([]byte, 1000))
				status, fails := tc.before, error(nil)
				go tracker.FollowRights(t.Context(), reviewer(func() (authorizationv1.SubjectRulesReviewStatus, error) { return status, fails }))
				after := func(d time.Duration, want string) {
					t.Helper()
					time.Sleep(d)
					synctest.Wait()
					a.want(want)
				}
				after(asking, "")
				status, fails = tc.after, tc.err
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
				status, fails = tc.before, nil
				after(asking, "")
			})
		})
	}
}
