// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-scheduler/espalier/internal/convert"
	"github.com/espalier-scheduler/espalier/internal/pages"
)

// foreign are the kinds of blocks that no API server takes: those of kind and of kustomize. What test/install does with the latter is
// its own.
var foreign = []string{"kind.x-k8s.io/v1alpha4", "kustomize.config.k8s.io/v1beta1"}

// readPages reads all pages.
func readPages(t *testing.T) []pages.Page {
	t.Helper()
	all, err := pages.All(os.DirFS(".."))
	must(t, err)
	return all
}

// TestPages reads every block of YAML in every page as the API server and the scheduler would: strictly, with its defaults, and
// with what its pods ask for.
func TestPages(t *testing.T) {
	read := 0
	all := readPages(t)
	for i := range all {
		for _, block := range all[i].Blocks() {
			if block.Lang != "yaml" {
				continue
			}
			for _, doc := range strings.Split(block.Text, "\n---\n") {
				objects, err := inPage(all[i].Path, []byte(doc))
				if read += objects; err != nil {
					t.Errorf("%s, the block in line %d: %v", all[i].Path, block.Line, err)
				}
			}
		}
	}
	if read < 40 {
		t.Errorf("the pages have %d objects", read)
	}
}

// inPage checks a document of a page. It returns how many objects it has for an API server.
func inPage(page string, doc []byte) (objects int, err error) {
	var typeMeta metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &typeMeta); err != nil {
		return 0, err
	}
	switch {
	case slices.Contains(foreign, typeMeta.APIVersion):
		return 0, nil
	case typeMeta.Kind == "" && strings.HasSuffix(page, "from-docker-swarm.md"):
		_, err := convert.Compose(doc)
		return 0, err
	case typeMeta.Kind == "": // values of the chart, which test/install renders
		return 0, yaml.UnmarshalStrict(doc, &map[string]any{})
	}
	if group, _, _ := strings.Cut(typeMeta.APIVersion, "/"); group == "kubescheduler.config.k8s.io" {
		_, err := schedulerConfig(doc)
		return 1, err
	}
	obj, err := object(doc)
	if err != nil {
		return 1, err
	}
	annotations, spec := podOf(obj)
	if spec == nil {
		return 1, nil
	}
	return 1, readable(annotations, spec)
}

// TestPagesRefuse makes sure that the check above can fail.
func TestPagesRefuse(t *testing.T) {
	for want, doc := range map[string]string{
		`unknown strategy "sprawl"`:     "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {espalier.dev/placement: sprawl=zone}}, spec: {containers: [{name: a, image: a}]}}",
		`unknown field "spec.replicaz"`: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicaz: 1}}",
		"spec.reserved[cpu]: -1":        "{apiVersion: placement.espalier.dev/v1alpha1, kind: Allocation, metadata: {name: a}, spec: {partition: p, reserved: {cpu: '-1'}}}",
		"espalier.dev/domain-limits":    "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {espalier.dev/domain-limits: zone=0}}, spec: {containers: [{name: a, image: a}]}}",
	} {
		asJSON, err := yaml.YAMLToJSON([]byte(doc))
		must(t, err)
		if _, err := inPage("docs/x.md", asJSON); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", doc, err, want)
		}
	}
}

// targets are those of a Makefile.
var targets = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)

// TestShellOfPages wants every block of commands to be what a shell can read, and to name targets and files that there are. What comes of
// the commands is for test/pages.
func TestShellOfPages(t *testing.T) {
	root := os.DirFS("..")
	makefiles, err := fs.Glob(root, "hack/make/*.mk")
	must(t, err)
	known := make(map[string]bool)
	for _, file := range append(makefiles, "Makefile") {
		text, err := fs.ReadFile(root, file)
		must(t, err)
		for _, target := range targets.FindAllSubmatch(text, -1) {
			known[string(target[1])] = true
		}
	}
	made, named := regexp.MustCompile(`(?m)^make ([a-z /-]*)(?: |$)`), regexp.MustCompile(`\b(?:hack|manifests)/[A-Za-z0-9_./-]*[A-Za-z0-9]`)
	blocks := 0
	all := readPages(t)
	for i := range all {
		page := all[i].Path
		for _, block := range all[i].Blocks() {
			if block.Lang != "sh" {
				continue
			}
			blocks++
			read := exec.CommandContext(t.Context(), "bash", "-n")
			read.Stdin = strings.NewReader(block.Text)
			if out, err := read.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s\n%s", page, err, out, block.Text)
			}
			for _, line := range made.FindAllStringSubmatch(block.Text, -1) {
				for _, target := range strings.Fields(line[1]) {
					if !strings.ContainsAny(target, "/=") && !known[target] { // a file, or a variable
						t.Errorf("%s: there is no target %q", page, target)
					}
				}
			}
			for _, file := range named.FindAllString(block.Text, -1) {
				if _, err := fs.Stat(root, file); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
	}
	if blocks < 40 || len(known) < 15 {
		t.Errorf("the pages have %d blocks, and make %d targets", blocks, len(known))
	}
}
