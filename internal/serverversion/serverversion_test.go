// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serverversion

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

func TestRead(t *testing.T) {
	for want, info := range map[string]apimachineryversion.Info{
		"1.35":  {Major: "1", Minor: "35", GitVersion: "v1.35.4"},
		"1.34":  {Major: "1", Minor: "34+", GitVersion: "v1.34.5-gke.1000"},
		"1.36":  {Major: "1", Minor: "36+", GitVersion: "a fork"},
		"1.33":  {Major: "1", Minor: "35", GitVersion: "v1.35.4", EmulationMajor: "1", EmulationMinor: "33"},
		"<nil>": {GitVersion: "a fork"},
	} {
		if got := Read(&info); fmt.Sprint(got) != want {
			t.Errorf("%+v: got %v, want %s", info, got, want)
		}
		if got := Read(&apimachineryversion.Info{GitVersion: Text(&info)}); fmt.Sprint(got) != want {
			t.Errorf("%+v: its text is of %v, want %s", info, got, want)
		}
	}
}

// Behind one address are API servers of two versions. It is a connection that leads to one of them.
func TestOldest(t *testing.T) {
	var connections, answered atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		minor := 36
		switch answered.Add(1) {
		case 3:
			minor = 35
		case 4: // it is not waited for
			<-r.Context().Done()
		}
		fmt.Fprintf(w, `{"major":"1","minor":"%d"}`, minor)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	asker, err := New(&rest.Config{Host: server.URL, Timeout: 2 * othersFor, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := asker.Oldest(); err != nil || got.String() != "1.35" || connections.Load() != asks {
		t.Errorf("got %v, %v, want 1.35 over %d connections", got, err, connections.Load())
	}
}

func TestCheck(t *testing.T) {
	versions := Of(version.MustParse("v1.37.2"))
	for text, want := range map[string]string{
		"1.33": "too old for this release of Espalier, made for 1.34 to 1.38, and no release is made for older ones: upgrade the cluster to 1.34 at least",
		"1.34": "", "1.37": "", "1.38": "",
		"1.39": "too new for this release of Espalier, made for 1.34 to 1.38: install a newer release of Espalier",
	} {
		err := versions.Check(version.MustParse(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
