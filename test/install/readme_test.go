// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestInstallAsDocumented renders what README.md, docs/install.md and the chart say about installing by hand: all images are
// those that were pushed, by either way.
func TestInstallAsDocumented(t *testing.T) {
	const registry = "registry.example.com/espalier/"
	for _, page := range []string{"../../README.md", "../../docs/install.md", filepath.Join(chart, "README.md")} {
		command := strings.NewReplacer("helm install", "template", "manifests/charts/espalier", chart,
			"$REGISTRY", "registry.example.com/espalier", "$TAG", "TAG").Replace(quoted(t, page, `(?m)^helm install espalier .*$`))
		images(t, must(t, "", "helm", strings.Fields(command)...), registry, "TAG")
	}

	beside := t.TempDir()
	clone, err := filepath.Abs("../..")
	if err == nil {
		err = os.Symlink(clone, filepath.Join(beside, "espalier"))
	}
	if err == nil {
		kustomization := quoted(t, "../../docs/install.md", `(?s)apiVersion: kustomize\.config.*?\n`+"```")
		err = os.WriteFile(filepath.Join(beside, "kustomization.yaml"), []byte(strings.Trim(kustomization, "`")), 0o600)
	}
	fatal(t, err)
	images(t, must(t, "", "kubectl", "kustomize", beside), registry, "TAG")
}

// quoted is the one place of a page that matches.
func quoted(t *testing.T, page, pattern string) string {
	t.Helper()
	content, err := os.ReadFile(page)
	fatal(t, err)
	found := regexp.MustCompile(pattern).FindAllString(string(content), -1)
	if len(found) != 1 {
		t.Fatalf("%s has %q for %s, want one", page, found, pattern)
	}
	return found[0]
}
