// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package informersync

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// request is one of an informer.
type request struct {
	of schema.GroupVersionResource
	// streams: all objects are sent by a watch, which goes on with their changes. lists: they are sent as a list. Neither is a watch of changes alone.
	streams, lists bool
	// namespaced: it asks for the objects of one namespace.
	namespaced bool
}

// readRequest says what an informer asks, false if it is none who asks. A list that names no resource version is not an informer's, or is one of
// the lists between two streams, which say the same: who lists once and is refused is not heard of again, and would be named for ever.
func readRequest(r *http.Request) (request, bool) {
	of, namespaced, is := collection(r.URL)
	if r.Method != http.MethodGet || !is {
		return request{}, false
	}
	query := r.URL.Query()
	watches := isSet(query, "watch")
	streams := watches && isSet(query, "sendInitialEvents")
	return request{of, streams, !watches, namespaced}, watches || query.Get("resourceVersion") != ""
}

func isSet(query url.Values, name string) bool {
	value := query.Get(name)
	return value == "true" || value == "1"
}

// collection is the resource whose objects an address has, of all namespaces or of one; is is false if it has something else. Before its path there may be that of a proxy.
func collection(u *url.URL) (of schema.GroupVersionResource, namespaced, is bool) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	at := slices.IndexFunc(parts, func(part string) bool { return part == "api" || part == "apis" })
	if at < 0 {
		return of, false, false
	}
	parts, at = parts[at:], 2
	if parts[0] == "apis" {
		at = 3
	}
	if len(parts) <= at {
		return of, false, false
	}
	if at == 3 {
		of.Group = parts[1]
	}
	of.Version = parts[at-1]
	rest := parts[at:]
	if namespaced = len(rest) == 3 && rest[0] == "namespaces"; namespaced {
		rest = rest[2:]
	}
	of.Resource = rest[0]
	return of, namespaced, len(rest) == 1
}
