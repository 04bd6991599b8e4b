// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package allocations

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/espalier-scheduler/espalier/pkg/placement/syntax"
)

// selector reads a selector. One that cannot be read selects nothing.
func (o *Object) selector(field string, in *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(in)
	if err != nil {
		o.refuse(fmt.Errorf("%s: %s: keys and values must be those of labels, and operators In, NotIn, Exists or DoesNotExist", field, syntax.Cut(err.Error())))
		return labels.Nothing()
	}
	return selector
}

// claiming reads a selector of an assignment. One that cannot be read selects what has the labels that it names, so that the pods of the
// allocation wait with it. They would be placed elsewhere otherwise, and those that run could be evicted by the maximum of another
// allocation that claims them.
func (o *Object) claiming(field string, in *metav1.LabelSelector) labels.Selector {
	if selector := o.selector(field, in); !labels.MatchesNothing(selector) {
		return selector
	}
	return named(in)
}

// named selects what has the labels that a selector names which cannot be read. A label is there with one of the values
// that are named, whatever the operator may mean, or with any if these are none of labels. Nothing has a label whose key is none.
func named(in *metav1.LabelSelector) labels.Selector {
	selector := labels.NewSelector()
	add := func(key string, operator selection.Operator, values []string) {
		requirement, err := labels.NewRequirement(key, operator, values)
		if err != nil {
			requirement, err = labels.NewRequirement(key, selection.Exists, nil)
		}
		if err != nil {
			selector = labels.Nothing()
			return
		}
		selector = selector.Add(*requirement)
	}
	for key, value := range in.MatchLabels {
		add(key, selection.In, []string{value})
	}
	for _, e := range in.MatchExpressions {
		switch strings.ToLower(string(e.Operator)) { // the usual slip is one of capitals
		case "notin":
			add(e.Key, selection.NotIn, e.Values)
		case "doesnotexist":
			add(e.Key, selection.DoesNotExist, nil)
		case "exists":
			add(e.Key, selection.Exists, nil)
		default:
			add(e.Key, selection.In, e.Values)
		}
	}
	return selector
}
