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

// Ask asks the API server for a review of the rights that the process has, as Create of a client does.
type Ask[Review any] func(context.Context, *Review, metav1.CreateOptions) (*Review, error)

// FollowRights looks, until the context ends, whether the process may still watch what its informers follow. The API server asks for the right when a
// watch begins, and not again: a watch goes on without it, up to ten minutes, and nobody would learn of it before.
//
// It goes by the rules in the whole cluster. Informers within a namespace are left out. Where the API server does not know all rules, it is asked about
// each kind that it names no rule for: an authorizer that is a webhook does not tell its rules, and RBAC not all where a binding names a role that is
// gone. A process without a right is ready until its watch ends: in the middle of an upgrade the roles may be the next release's, and the process in force
// would be stopped for it.
func (t *Tracker) FollowRights(ctx context.Context, rules Ask[authorizationv1.SelfSubjectRulesReview], access Ask[authorizationv1.SelfSubjectAccessReview]) {
	ticker := t.clock.NewTicker(asking)
	defer ticker.Stop()
	logger, failed, had := klog.FromContext(ctx), false, rights{}
	for ctx.Err() == nil {
		now := rights{asked: t.clock.Now()}
		within, cancel := context.WithTimeout(ctx, asking)
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: nowhere}}
		answer, err := rules(within, review, metav1.CreateOptions{})
		cancel()
		switch {
		case err == nil:
			now.SubjectRulesReviewStatus = answer.Status
			now.denied = t.denied(ctx, now, access)
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
	// denied are the kinds that may not be watched, of those for which an answer that is not complete has no rule.
	denied []schema.GroupVersionResource
}

func (r rights) complete() bool { return !r.Incomplete && r.EvaluationError == "" }

// mayWatch reports whether they allow to watch all objects of a kind.
func (r rights) mayWatch(of schema.GroupVersionResource) bool {
	return r.hasRule(of) || !r.complete() && !slices.Contains(r.denied, of)
}

func (r rights) hasRule(of schema.GroupVersionResource) bool {
	return slices.ContainsFunc(r.ResourceRules, func(rule authorizationv1.ResourceRule) bool { return allows(rule, of) })
}

// denied asks about each kind for which an answer that is not complete has no rule, and returns those that may not be watched. What is not answered in time,
// or by a fault of an authorizer, is not among them.
func (t *Tracker) denied(ctx context.Context, r rights, access Ask[authorizationv1.SelfSubjectAccessReview]) (denied []schema.GroupVersionResource) {
	if r.complete() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, of := range t.inWholeCluster() {
		if r.hasRule(of) {
			continue
		}
		attributes := &authorizationv1.ResourceAttributes{Verb: "watch", Group: of.Group, Version: of.Version, Resource: of.Resource}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
		answer, err := access(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed && (answer.Status.Denied || answer.Status.EvaluationError == "") {
			denied = append(denied, of)
		}
	}
	return denied
}

// inWholeCluster are the kinds that are followed in all namespaces.
func (t *Tracker) inWholeCluster() (all []schema.GroupVersionResource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for of, k := range t.kinds {
		if !k.namespaced {
			all = append(all, of)
		}
	}
	return all
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
