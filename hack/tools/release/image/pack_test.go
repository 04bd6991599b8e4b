// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const program = "package main\n\nfunc main() {}\n"

// compile builds a program that does nothing, for a platform.
func compile(t *testing.T, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "espalier-scheduler")
	must(t, os.WriteFile(source, []byte(program), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source)
	cmd.Env = append(cmd.Environ(), append([]string{"CGO_ENABLED=0", "GOFLAGS="}, env...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building for %v: %v\n%s", env, err, out)
	}
	return binary
}

func TestImageHoldsOneProgram(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		t.Run(architecture, func(t *testing.T) {
			binary := compile(t, "GOOS=linux", "GOARCH="+architecture)
			first, second := filepath.Join(t.TempDir(), "1.tar"), filepath.Join(t.TempDir(), "2.tar")
			for _, archive := range []string{first, second} {
				must(t, run(binary, "v1.2.3", "registry.example.com/espalier-scheduler:v1.2.3", archive))
			}
			one, errOne := os.ReadFile(first)
			two, errTwo := os.ReadFile(second)
			if errOne != nil || errTwo != nil || !bytes.Equal(one, two) {
				t.Error("two archives of the same binary are not the same")
			}
			img, err := tarball.ImageFromPath(first, nil)
			must(t, err)
			if err := validate.Image(img); err != nil {
				t.Error(err)
			}
			config, err := img.ConfigFile()
			must(t, err)
			if config.OS != "linux" || config.Architecture != architecture {
				t.Errorf("the image is for %s/%s", config.OS, config.Architecture)
			}
			if config.Config.User != user || !slices.Equal(config.Config.Entrypoint, []string{"/espalier-scheduler"}) {
				t.Errorf("it runs %q as %q", config.Config.Entrypoint, config.Config.User)
			}
			if v := config.Config.Labels["org.opencontainers.image.version"]; v != "v1.2.3" {
				t.Errorf("it says that it is version %q", v)
			}
			content, err := os.ReadFile(binary)
			must(t, err)
			files := tar.NewReader(mutate.Extract(img))
			header, err := files.Next()
			must(t, err)
			got, err := io.ReadAll(files)
			if err != nil || header.Name != "espalier-scheduler" || header.Mode != 0o555 || !bytes.Equal(got, content) {
				t.Errorf("it holds %s, mode %o, %d bytes of %d: %v", header.Name, header.Mode, len(got), len(content), err)
			}
			if header, err := files.Next(); err != io.EOF {
				t.Errorf("it holds %v as well, %v", header, err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	must(t, os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600))
	linux := compile(t, "GOOS=linux", "GOARCH=amd64")
	tests := map[string]struct{ binary, tag, want string }{
		"no binary":          {"", "a:b", "--binary is empty"},
		"not there":          {text + "s", "a:b", "no such file"},
		"a script":           {text, "a:b", "no binary for Linux"},
		"another system":     {compile(t, "GOOS=windows", "GOARCH=amd64"), "a:b", "no binary for Linux"},
		"another processor":  {compile(t, "GOOS=linux", "GOARCH=riscv64"), "a:b", "build it for amd64 or arm64"},
		"linked dynamically": {compile(t, "GOOS=linux", "GOARCH=amd64", "GOFLAGS=-buildmode=pie"), "a:b", "CGO_ENABLED=0"},
		"a tag that is none": {linux, "A B", `--tag "A B"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(tc.binary, "v1", tc.tag, filepath.Join(t.TempDir(), "image.tar"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
		})
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDockerfileSaysTheSame wants the images of the Dockerfile to be those that are
// packed here: from scratch, one file, the same user and the same entry point.
func TestDockerfileSaysTheSame(t *testing.T) {
	content, err := os.ReadFile("../../../../Dockerfile")
	must(t, err)
	for _, name := range []string{"scheduler", "controller"} {
		_, stage, ok := strings.Cut(string(content), "FROM scratch AS "+name+"\n")
		if !ok {
			t.Fatalf("the Dockerfile has no target %s from scratch", name)
		}
		stage, _, _ = strings.Cut(stage, "\n\n")
		want := []string{"COPY --from=build /src/bin/espalier-" + name + " /espalier-" + name, "USER " + user, `ENTRYPOINT ["/espalier-` + name + `"]`}
		if got := strings.Split(strings.TrimSpace(stage), "\n"); !slices.Equal(got, want) {
			t.Errorf("%s is\n%q, want\n%q", name, got, want)
		}
	}
}

// TestDockerignoreLeavesOutWhatIsMade wants an engine to be given all files of the tree. Git calls
// a tree dirty that lacks one, and the version of the image would say so.
func TestDockerignoreLeavesOutWhatIsMade(t *testing.T) {
	made := patterns(t, ".gitignore")
	for _, pattern := range patterns(t, ".dockerignore") {
		if !slices.Contains(made, pattern) {
			t.Errorf(".dockerignore leaves out %s, which .gitignore does not", pattern)
		}
	}
}

// patterns reads a file at the root of the repository without what is said beside.
func patterns(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile("../../../../" + name)
	must(t, err)
	all := slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, "#") })
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}
