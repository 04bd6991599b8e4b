// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestUpgradeAsDocumented installs a chart that is older in what upgrades stumble over, a value that it does not know yet and a kind that
// allows less, with images that were named as README.md tells to, and upgrades it by the very commands of docs/versions.md. What the
// operator has set is kept, but for the images, which are the new chart's; and there is a way back.
func TestUpgradeAsDocumented(t *testing.T) {
	const namespace = "upgrade"
	before := everything(t)
	must(t, "", "helm", "install", "espalier", olderChart(t), "--namespace", namespace, "--create-namespace",
		"--set", "scheduler.replicas=3,imageRegistry=registry.example.com/espalier,scheduler.image.tag=v0,controller.image.tag=v0")
	here := strings.NewReplacer(
		"placement.espalier.dev_", chart+"/crds/placement.espalier.dev_",
		"espalier-VERSION.tgz", chart, "kube-system", namespace)
	_, _, err := tool(t, "", "helm", "upgrade", "espalier", chart, "--namespace", namespace, "--reuse-values")
	if want := "missing properties 'serviceMonitor', 'prometheusRule'"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("with the values of before alone: want an error with %q, got %v", want, err)
	}
	commands := upgradeCommands(t)
	for _, command := range commands {
		words := strings.Fields(here.Replace(command))
		must(t, "", words[0], words[1:]...)
		if words[1] != "upgrade" {
			continue
		}
		deployment, err := cluster.client.AppsV1().Deployments(namespace).Get(t.Context(), "espalier-scheduler", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("after %q: %v", command, err)
		}
		if n := *deployment.Spec.Replicas; n != 3 {
			t.Errorf("after %q there are %d schedulers, want the 3 of before", command, n)
		}
		runs := must(t, "", "kubectl", "get", "deployments", "--namespace", namespace, "--output", `jsonpath={range .items[*]}---{"\n"}{@}{"\n"}{end}`)
		images(t, runs, "registry.example.com/espalier/", "latest")
		if kind := must(t, "", "kubectl", "get", "--filename", chart+"/crds", "--output", "yaml"); !strings.Contains(kind, "maxItems: 16") {
			t.Errorf("after %q the kind is the older one", command)
		}
	}
	must(t, "", "helm", "uninstall", "espalier", "--namespace", namespace)
	must(t, "", "kubectl", "delete", "namespace", namespace, "--wait")
	must(t, "", "kubectl", "delete", "--filename", chart+"/crds", "--wait")
	leavesNothing(t, before)
}

// upgradeCommands are those that the page tells to upgrade by, and the way back.
func upgradeCommands(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/versions.md")
	fatal(t, err)
	_, section, _ := strings.Cut(string(page), "## How to upgrade\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for _, quoted := range strings.FieldsFunc(section, func(r rune) bool { return r == '`' || r == '\n' }) {
		if strings.HasPrefix(quoted, "kubectl ") || strings.HasPrefix(quoted, "helm ") {
			command, _, _ := strings.Cut(quoted, "#")
			commands = append(commands, command)
		}
	}
	if len(commands) != 3 {
		t.Fatalf("docs/versions.md has the commands %q, want those for the kind, the chart and the way back", commands)
	}
	return commands
}

// olderChart is this chart as it may have been: without what is for the Prometheus operator,
// whose values are the last, and with a kind that allows one level less.
func olderChart(t *testing.T) string {
	t.Helper()
	older := filepath.Join(t.TempDir(), "espalier")
	fatal(t, os.CopyFS(older, os.DirFS(chart)))
	for _, later := range []string{"servicemonitor.yaml", "prometheusrule.yaml", "metricsservice.yaml"} {
		fatal(t, os.Remove(filepath.Join(older, "templates", later)))
	}
	change(t, older+"/values.yaml", func(text string) string {
		text, _, found := strings.Cut(text, "\nserviceMonitor:\n")
		if !found {
			t.Fatal("the chart has no value serviceMonitor")
		}
		return text
	})
	change(t, older+"/values.schema.json", func(text string) string {
		return strings.Replace(text, "\"networkPolicy\",\n    \"serviceMonitor\",\n    \"prometheusRule\"\n", "\"networkPolicy\"\n", 1)
	})
	change(t, older+"/crds/placement.espalier.dev_placementpolicies.yaml", func(text string) string {
		return strings.ReplaceAll(text, "maxItems: 16", "maxItems: 15")
	})
	return older
}

// change rewrites a file, which must come out different.
func change(t *testing.T, path string, by func(string) string) {
	t.Helper()
	content, err := os.ReadFile(path)
	fatal(t, err)
	changed := by(string(content))
	if changed == string(content) {
		t.Fatalf("%s is what it was", path)
	}
	fatal(t, os.WriteFile(path, []byte(changed), 0o600))
}
