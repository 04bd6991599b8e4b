// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A version with all that a version may have, and what is made of it where a plus may not be.
const (
	released = "v1.2.3-rc.1+build.5"
	tag      = "v1.2.3-rc.1_build.5"
)

// TestRelease makes a release for the machine it runs on, and holds each artifact to
// what docs/versions.md says of it: nobody looks at them again before they are published.
func TestRelease(t *testing.T) {
	dir := "../../_output/release/" + released
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	release(t)
	files := sums(t, dir)
	platform := "linux-" + runtime.GOARCH
	want := []string{"CHANGES.md", "espalier-1.2.3-rc.1+build.5.tgz", "node-pool.yaml", "placement.espalier.dev_allocations.yaml", "placement.espalier.dev_clusterplacementpolicies.yaml", "placement.espalier.dev_moves.yaml", "placement.espalier.dev_partitions.yaml", "placement.espalier.dev_placementpolicies.yaml", "replace-default.yaml", "second-scheduler.yaml"}
	for _, name := range []string{"espalier-scheduler", "espalier-controller"} {
		want = append(want, name+"-"+platform, name+"-"+platform+".cdx.json", name+"-"+platform+".tar")
		binary(t, filepath.Join(dir, name+"-"+platform))
		bill(t, filepath.Join(dir, name+"-"+platform+".cdx.json"))
		archive(t, filepath.Join(dir, name+"-"+platform+".tar"), name+":"+tag)
	}
	want = append(want, "krew.yaml", "espalier-docs.tar.gz")
	docs(t, filepath.Join(dir, "espalier-docs.tar.gz"))
	for system, archive := range plugins(t, dir) {
		want = append(want, archive)
		if system == runtime.GOOS {
			binary(t, filepath.Join(unpacked(t, filepath.Join(dir, archive)), "kubectl-espalier"))
		}
	}
	slices.Sort(want)
	if !slices.Equal(files, want) {
		t.Errorf("the release consists of\n%q, want\n%q", files, want)
	}
	images(t, must(t, "", "helm", "template", "espalier", filepath.Join(dir, "espalier-1.2.3-rc.1+build.5.tgz"), "--namespace", "kube-system"), "", tag)
	for _, overlay := range []string{"second-scheduler", "node-pool", "replace-default"} {
		path := filepath.Join(dir, overlay+".yaml")
		text, err := os.ReadFile(path)
		fatal(t, err)
		images(t, string(text), "", tag)
		must(t, "", "kubectl", "apply", "--dry-run=server", "--filename", path)
	}
	for _, kind := range []string{"allocations", "clusterplacementpolicies", "moves", "partitions", "placementpolicies"} {
		must(t, "", "kubectl", "apply", "--server-side", "--dry-run=server", "--filename", filepath.Join(dir, "placement.espalier.dev_"+kind+".yaml"))
	}
	changes, err := os.ReadFile(filepath.Join(dir, "CHANGES.md"))
	if err != nil || !strings.HasPrefix(string(changes), "## 1.2.3-rc.1+build.5\n") || !strings.Contains(string(changes), "\n- ") {
		t.Errorf("what changed is\n%s\n%v", changes, err)
	}
}

// release runs what make release-artifacts runs, in the shell of somebody who has pushed images before.
func release(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../hack/release.sh")
	cmd.Env = append(environment(), "ESPALIER_TOOLS="+cluster.tools, "ARCHITECTURES="+runtime.GOARCH, "PLUGIN_PLATFORMS=linux/"+runtime.GOARCH, "VERSION="+released, "REGISTRY=registry.example.com/espalier")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("hack/release.sh: %v\n%s", err, out)
	}
}

// sums names the files of a release, all of which its checksums must be right about.
func sums(t *testing.T, dir string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	fatal(t, err)
	said := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		said[name] = sum
	}
	entries, err := os.ReadDir(dir)
	fatal(t, err)
	for _, entry := range entries {
		if entry.Name() == "SHA256SUMS" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		fatal(t, err)
		if sum := fmt.Sprintf("%x", sha256.Sum256(content)); said[entry.Name()] != sum {
			t.Errorf("the sum of %s is %s, and SHA256SUMS says %q", entry.Name(), sum, said[entry.Name()])
		}
	}
	if len(said) != len(entries)-1 {
		t.Errorf("SHA256SUMS is about %d files, and there are %d beside it", len(said), len(entries)-1)
	}
	return slices.Sorted(maps.Keys(said))
}

// binary wants a program to say the version.
func binary(t *testing.T, path string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path, "--version").Output()
	if err != nil || !slices.Contains(strings.Fields(string(out)), released) {
		t.Errorf("%s --version says %q, %v", filepath.Base(path), out, err)
	}
}

// unpacked is a folder with what is in an archive.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "--extract", "--file", archive, "--directory", dir).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", archive, err, out)
	}
	return dir
}

// plugins are the archives of the plugin of kubectl that krew's manifest names with their sums, by operating system.
func plugins(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "krew.yaml"))
	fatal(t, err)
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct {
				URI, SHA256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		t.Fatalf("krew.yaml: %v", err)
	}
	if manifest.Spec.Version != released || len(manifest.Spec.Platforms) == 0 {
		t.Errorf("krew.yaml says\n%s", text)
	}
	archives := make(map[string]string)
	for _, p := range manifest.Spec.Platforms {
		system, archive := p.Selector.MatchLabels["os"], path.Base(p.URI)
		archives[system] = archive
		content, err := os.ReadFile(filepath.Join(dir, archive))
		fatal(t, err)
		if archive != "kubectl-espalier-"+system+"-"+p.Selector.MatchLabels["arch"]+".tar.gz" || p.SHA256 != fmt.Sprintf("%x", sha256.Sum256(content)) {
			t.Errorf("krew.yaml says of %s that it is %s, with the sum %s", system, archive, p.SHA256)
		}
		folder := unpacked(t, filepath.Join(dir, archive))
		for _, file := range []string{p.Bin, "kubectl_complete-espalier"} {
			if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
				t.Errorf("%s lacks a program: %v", archive, err)
			}
		}
	}
	return archives
}

// docs wants an archive to have the site, and each page that the navigation names in it.
func docs(t *testing.T, archive string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "tar", "--list", "--file", archive).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", archive, err, out)
	}
	files := strings.Fields(string(out))
	for _, want := range []string{"index.html", "contents.html", "install.html", "evenness.svg", "site.css", "find.js", "search.js", "reference/policies.html", "project/contributing.html"} {
		if !slices.Contains(files, want) {
			t.Errorf("%s does not have %s", filepath.Base(archive), want)
		}
	}
}

// bill wants a bill of materials to name the version, Go's, and the Kubernetes that this is linked from.
func bill(t *testing.T, path string) {
	t.Helper()
	type component struct{ Name, Version string }
	var bill struct {
		BOMFormat  string
		Metadata   struct{ Component component }
		Components []component
	}
	content, err := os.ReadFile(path)
	fatal(t, err)
	if err := json.Unmarshal(content, &bill); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if bill.BOMFormat != "CycloneDX" || bill.Metadata.Component.Version != released {
		t.Errorf("%s is %s, about %+v", filepath.Base(path), bill.BOMFormat, bill.Metadata.Component)
	}
	version, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}", "k8s.io/client-go").Output()
	fatal(t, err)
	for _, want := range []component{{"std", runtime.Version()}, {"k8s.io/client-go", strings.TrimSpace(string(version))}} {
		if !slices.Contains(bill.Components, want) {
			t.Errorf("%s does not name %+v among %d components", filepath.Base(path), want, len(bill.Components))
		}
	}
}

// archive wants an image to have the name that charts and manifests ask for.
func archive(t *testing.T, path, name string) {
	t.Helper()
	file, err := os.Open(path)
	fatal(t, err)
	defer func() { _ = file.Close() }()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s has no manifest.json", path)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if header.Name != "manifest.json" {
			continue
		}
		var entries []struct{ RepoTags []string }
		if err := json.NewDecoder(reader).Decode(&entries); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(entries) != 1 || !slices.Equal(entries[0].RepoTags, []string{name}) {
			t.Errorf("%s holds %v, want %s", filepath.Base(path), entries, name)
		}
		return
	}
}

// images wants rendered Deployments to ask for the images of that registry and tag, and there to be two.
func images(t *testing.T, text, registry, tag string) {
	t.Helper()
	var asked []string
	for _, o := range decode(t, text) {
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			image, _, _ := unstructured.NestedString(c.(map[string]any), "image")
			asked = append(asked, image)
		}
	}
	slices.Sort(asked)
	if want := []string{registry + "espalier-controller:" + tag, registry + "espalier-scheduler:" + tag}; !slices.Equal(asked, want) {
		t.Errorf("the images are %q, want %q", asked, want)
	}
}

// TestNoStoryIsNoSuccess asks for stories by names that none has, and wants that to be said before any is told and
// any cluster is made; and asks for some that there are, without telling them.
func TestNoStoryIsNoSuccess(t *testing.T) {
	run := func(env string, command ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), env, "DOCKER_HOST=tcp://127.0.0.1:1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const want = "RUN=Typo is in the name of no story of "
	for env, command := range map[string][]string{
		"RUN=Typo": {"hack/e2e-kind.sh"},
		"":         {"make", "--assume-old=bin/espalier-scheduler", "--assume-old=bin/devcluster", "e2e-reliability", "RUN=Typo"},
	} {
		if said, err := run(env, command...); err == nil || !strings.Contains(said, want) {
			t.Errorf("%s %q: want an error with %q, got %v:\n%s", env, command, want, err, said)
		}
	}
	// What is behind the slash is known by the story alone.
	if said, err := run("", "hack/stories.sh", "PullThatFails/typo", "./test/kubelet"); err != nil {
		t.Errorf("a name that there is: %v\n%s", err, said)
	}
}
