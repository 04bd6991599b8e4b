// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// asking is the time between two questions about the rights, and for how long one waits for its answer.
const asking = 3 * time.Second

// nowhere is a namespace, which need not exist, in which the process has the rights of the whole cluster alone: the question must name one.
const nowhere = "informers-of-all-namespaces"

// Reviewer asks the API server which rights the process has, as SelfSubjectRulesReviews of a client do.
type Reviewer interface {
	Create(ctx context.Context, review *authorizationv1.SelfSubjectRulesReview, options metav1.CreateOptions) (*authorizationv1.SelfSubjectRulesReview, error)
}

// FollowRights looks, until the context ends, whether the process may still watch what its informers follow. The API server asks for the right when a
// watch begins, and not again: a watch goes on without it, up to ten minutes, and nobody would learn of it before.
//
// It goes by the rules in the whole cluster. Informers within a namespace are left out. Where the API server does not know all rules, as
// an authorizer that is a webhook does not tell them, no kind is named. A process without a right is ready until its watch ends: in the middle of an
// upgrade the roles may be the next release's, and the process in force would be stopped for it.
func (t *Tracker) FollowRights(ctx context.Context, reviewer Reviewer) {
	ticker := t.clock.NewTicker(asking)
	defer ticker.Stop()
	logger, failed, had := klog.FromContext(ctx), false, rights{}
	for ctx.Err() == nil {
		now := rights{asked: t.clock.Now()}
		within, cancel := context.WithTimeout(ctx, asking)
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: nowhere}}
		answer, err := reviewer.Create(within, review, metav1.CreateOptions{})
		cancel()
		switch {
		case err == nil:
			now.SubjectRulesReviewStatus = answer.Status
			t.entitled(had, now)
			had = now
		case !failed && ctx.Err() == nil:
			logger.V(2).Info("Cannot ask which rights there are; a right that is taken away is noticed when its watch ends", "err", err)
		}
		failed = err != nil
		select {
		case <-ctx.Done():
		case <-ticker.C():
		}
	}
}

// rights are those that the process has, and when it asked.
type rights struct {
	authorizationv1.SubjectRulesReviewStatus
	asked time.Time
}

// mayWatch reports whether they allow to watch all objects of a kind, as far as they say.
func (r rights) mayWatch(of schema.GroupVersionResource) bool {
	return r.Incomplete || r.EvaluationError != "" || slices.ContainsFunc(r.ResourceRules, func(rule authorizationv1.ResourceRule) bool { return allows(rule, of) })
}

// entitled notes which kinds may be watched now, and which no longer. One answer is not taken at its word: RBAC says less than is so while it starts.
func (t *Tracker) entitled(had, now rights) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for of, k := range t.kinds {
		switch {
		case k.namespaced || now.mayWatch(of):
			k.right = failure{}
		case had.mayWatch(of):
			k.right.note(now.asked, string(metav1.StatusReasonForbidden), fmt.Sprintf("%s may no longer be watched, for want of the right in the whole cluster: its changes are learned until the watch that is open ends", of.GroupResource()))
		}
	}
}

// allows reports whether a rule allows to watch all objects of a kind.
func allows(r authorizationv1.ResourceRule, of schema.GroupVersionResource) bool {
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	return len(r.ResourceNames) == 0 && has(r.Verbs, "watch") && has(r.APIGroups, of.Group) && has(r.Resources, of.Resource)
}
