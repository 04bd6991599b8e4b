// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	placementv1alpha1 "github.com/espalier-scheduler/espalier/apis/placement/v1alpha1"
)

// question is what RBAC is asked about a request.
type question struct{ group, resource, verb string }

func (q question) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s.%s", q.verb, q.resource, q.group), ".")
}

// proxy passes requests on as they are, credentials and all, and notes the answers.
type proxy struct {
	*httptest.Server

	mu      sync.Mutex // guards what follows
	answers map[question]map[int]int
	// refused are the questions that were refused, in order.
	refused []question
	// only, if set, is the stage of which alone something is shown: the Moves in its namespace, and the objects of other kinds that have its
	// label. It is set before there are requests.
	only string
	// meddle, if set, is called before a request is passed on; true is that it has answered.
	meddle func(http.ResponseWriter, *apirequest.RequestInfo) bool
}

var resolver = &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

func startProxy(t *testing.T) *proxy {
	t.Helper()
	target, err := url.Parse(cluster.config.Host)
	must(t, err)
	// Nothing of the administrator's: whoever asks brings a token.
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(cluster.config))
	must(t, err)
	p := &proxy{answers: make(map[question]map[int]int)}
	behind := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if p.only != "" {
				narrow(r.Out.URL, p.only)
			}
		},
		Transport:      transport,
		FlushInterval:  -1, // a watch is told at once
		ModifyResponse: func(r *http.Response) error { return p.note(r.Request, r.StatusCode) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := resolver.NewRequestInfo(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		meddle := p.meddle
		p.mu.Unlock()
		if meddle != nil && meddle(w, info) {
			return
		}
		behind.ServeHTTP(w, r)
	}))
	// No client gives its token away in the clear.
	p.EnableHTTP2 = true
	p.StartTLS()
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// labelled are the kinds whose objects have the label of their stage.
var labelled = []string{nodeClaims.Resource, placementv1alpha1.PartitionResource, placementv1alpha1.AllocationResource}

// narrow has a request for all Moves, or objects of a kind that is labelled, ask for those of a stage.
func narrow(to *url.URL, stage string) {
	if group, is := strings.CutSuffix(to.Path, "/moves"); is && !strings.Contains(group, "/namespaces/") {
		to.Path = group + "/namespaces/" + stage + "/moves"
	}
	if slices.Contains(labelled, path.Base(to.Path)) {
		query := to.Query()
		query.Set("labelSelector", ofStage+"="+stage)
		to.RawQuery = query.Encode()
	}
}

func (p *proxy) note(r *http.Request, status int) error {
	info, err := resolver.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return err
	}
	q := question{info.APIGroup, info.Resource, info.Verb}
	if info.Subresource != "" {
		q.resource += "/" + info.Subresource
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers[q] == nil {
		p.answers[q] = make(map[int]int)
	}
	p.answers[q][status]++
	// Who may not bind a claim may write its status, but not these fields.
	invalid := status == http.StatusUnprocessableEntity && q.resource == "resourceclaims/status"
	if status == http.StatusForbidden || invalid {
		p.refused = append(p.refused, q)
	}
	return nil
}

// count is how often the question had this answer.
func (p *proxy) count(q question, status int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers[q][status]
}

// refusals are the questions that were refused so far.
func (p *proxy) refusals() []question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]question(nil), p.refused...)
}

// before has requests go through meddle from now on.
func (p *proxy) before(meddle func(http.ResponseWriter, *apirequest.RequestInfo) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meddle = meddle
}

// asked says whether the question was asked.
func (p *proxy) asked(q question) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.answers[q]) > 0
}
