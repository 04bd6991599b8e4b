// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-scheduler/espalier/internal/commandtest"
)

// Every command takes every format; the names of what it is about are one a line.
func TestFormats(t *testing.T) {
	file := cluster(t)
	for args, names := range map[string]string{
		"tree deployment/web": "deployment/web\n",
		"explain pod/web-3":   "pod/web-3\n",
		"balance":             "deployment/web\n",
		"simulate -f testdata/web.yaml --drain c-1": "pod/choosy\npod/web-simulated-5\npod/web-simulated-6\n",
		"lint -f testdata/web.yaml":                 "deployment/web\n",
		"convert -f testdata/compose.yaml":          "daemonset/agent\ndeployment/web\n",
	} {
		for _, format := range append([]string{""}, forms...) {
			full := append(strings.Fields(args), "-n", "shop", "-o", format)
			if !strings.HasPrefix(args, "convert") {
				full = append(full, "--snapshot", file)
			}
			got, err := run(t, full...)
			if err != nil || got == "" {
				t.Errorf("%s -o %q: %v: %q", args, format, err, got)
			}
			if format == "name" && got != names {
				t.Errorf("%s: the names are %q, want %q", args, got, names)
			}
		}
	}
	for _, cmd := range newCommand("v0.0.0", genericiooptions.IOStreams{}).Commands() {
		if flag := cmd.Flags().Lookup("output"); cmd.Name() != "snapshot" && (flag == nil || !strings.Contains(flag.Usage, strings.Join(forms, ", "))) {
			t.Errorf("%s has no --output of all formats", cmd.Name())
		}
	}
}

// A namespace comes from the context of the kubeconfig, or from the flag; contexts, and what of the cluster is not asked for, are completed.
func TestKubeconfig(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"one","contexts":[{"name":"one","context":{"namespace":"shop"}},{"name":"other","context":{"namespace":"none"}}]}`
	must(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
	file := cluster(t)
	for _, args := range []string{"", "--context other -n shop"} {
		full := append(strings.Fields(args), "tree", "deployment/web", "--kubeconfig", kubeconfig, "--snapshot", file)
		if got, err := run(t, full...); err != nil || !strings.Contains(got, "in namespace shop") {
			t.Errorf("%s: %v: %s", args, err, got)
		}
	}
	_, err := run(t, "tree", "deployment/web", "--kubeconfig", kubeconfig, "--context", "other", "--snapshot", file)
	commandtest.WantMistake(t, err, `in namespace "none"`)
	got, err := run(t, "__complete", "tree", "--kubeconfig", kubeconfig, "--context", "o")
	if err != nil || !strings.HasPrefix(got, "one\nother\n:4\n") {
		t.Errorf("contexts are completed by %q, %v", got, err)
	}
}

// What a library says is followed by what to do about it, in one line.
func TestLine(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for want, err := range map[string]error{
		"--snapshot":                           fmt.Errorf("listing pods: %w", apierrors.NewForbidden(pods, "", errors.New("no"))),
		"log in again":                         apierrors.NewUnauthorized("no"),
		"--kubeconfig and --context choose it": fmt.Errorf("asking:\n%w", &net.OpError{Op: "dial", Err: errors.New("connection refused")}),
		"get-contexts":                         errors.New(`context "x" does not exist`),
	} {
		if got := line(err); !strings.Contains(got, want) || strings.Contains(got, "\n") || !strings.HasPrefix(got, strings.Fields(err.Error())[0]) {
			t.Errorf("of %q it is said %q", err, got)
		}
	}
	if got := line(errors.New("two\n\tlines")); got != "two lines" {
		t.Errorf("two lines become %q", got)
	}
}
