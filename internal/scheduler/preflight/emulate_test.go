// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/espalier-scheduler/espalier/manifests"
)

// A scheduler does as one of the API server's version, unless it is told a version.
func TestEmulate(t *testing.T) {
	for name, tc := range map[string]struct {
		answer       string
		args         []string
		want, prints string
		refused      string
	}{
		"older":             {answer: `{"gitVersion":"v1.35.4+k3s1"}`, want: "[kube=1.35]"},
		"the oldest":        {answer: `{"gitVersion":"v1.34.5"}`, want: "[kube=1.34]"},
		"its own":           {answer: `{"gitVersion":"v1.37.0"}`, want: ""},
		"newer":             {answer: `{"gitVersion":"v1.38.0-beta.0"}`, want: ""},
		"told":              {answer: `{"gitVersion":"v1.35.4"}`, args: []string{"--emulated-version=1.36"}, want: "[1.36]"},
		"told, and too old": {answer: `{"gitVersion":"v1.30.0"}`, args: []string{"--emulated-version=1.34"}, want: "[1.34]"},
		"it does not say":   {answer: `{}`, want: "", prints: "Warning: the API server does not say of which version it is: Kubernetes 1.37 is assumed; give --emulated-version if it is older\n"},
		"too old":           {answer: `{"gitVersion":"v1.33.9"}`, want: "", refused: "it is of Kubernetes 1.33, which is too old"},
		"too new":           {answer: `{"gitVersion":"v1.39.0"}`, want: "", refused: "it is of Kubernetes 1.39, which is too new"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, tc.answer)
			}))
			defer server.Close()
			flags := parsed(t, append([]string{"--secure-port=0", "--master=" + server.URL}, tc.args...)...)
			var out bytes.Buffer
			set := ""
			err := Run(t.Context(), flags, manifests.SchedulerConfig, func() error {
				if flags.Changed(EmulatedVersion) { // the registry of gates, which holds the value, is one for the process
					set = flags.Lookup(EmulatedVersion).Value.String()
				}
				return nil
			}, &out)
			if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("the error is %v, want %q", err, tc.refused)
			}
			if set != tc.want || out.String() != tc.prints {
				t.Errorf("gates are set for %s, want %s; it prints %q, want %q", set, tc.want, out.String(), tc.prints)
			}
		})
	}
}
