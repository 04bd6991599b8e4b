// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package faultcache

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	configv1 "github.com/espalier-scheduler/espalier/apis/config/v1"
	"github.com/espalier-scheduler/espalier/internal/clusterview"
	"github.com/espalier-scheduler/espalier/internal/faultcache/record"
)

// TestOperations wants docs/operations.md to name every Event and metric, and every
// argument with its default.
func TestOperations(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	_, section, found := strings.Cut(string(page), "\n## Nodes on which")
	if !found {
		t.Fatal("it has no section about faulty nodes")
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(section, -1) {
		if !strings.HasPrefix(m[1], "--") { // of the controller, which holds them itself
			got = append(got, m[1])
		}
	}
	want := []string{ReasonFaulty, ReasonFaultyCleared, ReasonSuspect, ReasonSuspectCleared, ReasonRecordUnreadable}
	for _, metric := range []interface{ FQName() string }{faultyNodes, marksTotal, failuresTotal, suspectNodes, recordWritesTotal, sourceErrorsTotal} {
		want = append(want, metric.FQName())
	}
	defaults := arguments(t)
	for name, value := range defaults {
		want = append(want, name)
		// Durations are written shorter than Go prints them.
		row := "(?m)^\\| `" + regexp.QuoteMeta(name) + "` \\| [^|]+ \\| `" + regexp.QuoteMeta(strings.TrimSuffix(value, "m0s")) + "m?` \\|"
		if !regexp.MustCompile(row).MatchString(section) {
			t.Errorf("%s is %s by default, and its row says something else", name, value)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("it has rows of\n%q, want\n%q", got, want)
	}
	for _, text := range []string{clusterview.FailuresForgivenAnnotation + "=", "delete configmap espalier-scheduler" + record.Suffix, clusterview.SuspectTaint} {
		if !strings.Contains(section, text) {
			t.Errorf("it does not say %q", text)
		}
	}
}

// arguments are those of the plugin with their defaults, by their paths.
func arguments(t *testing.T) map[string]string {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, configv1.AddToScheme(scheme))
	args := &configv1.FaultyNodeArgs{}
	scheme.Default(args)
	text, err := yaml.Marshal(args)
	must(t, err)
	var tree map[string]any
	must(t, yaml.Unmarshal(text, &tree))
	all := make(map[string]string)
	var walk func(path string, value any)
	walk = func(path string, value any) {
		if below, ok := value.(map[string]any); ok {
			for key, value := range below {
				walk(strings.TrimPrefix(path+"."+key, "."), value)
			}
			return
		}
		all[path] = fmt.Sprint(value)
	}
	walk("", tree)
	return all
}
