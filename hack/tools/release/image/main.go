// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image packs a static binary into an image: from scratch, one layer with one
// file, a user that is not root. No registry is asked and no engine is needed, and
// the same binary gives the same image byte for byte.
//
// The archive is what docker load, kind load image-archive, podman load and
// ctr images import read.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	binary := flag.String("binary", "", "the binary, for Linux and statically linked")
	version := flag.String("version", "", "its version, for the image's labels")
	tag := flag.String("tag", "", "the image's name and tag, as the cluster will ask for it")
	output := flag.String("output", "", "the archive to write")
	flag.Parse()
	if err := run(*binary, *version, *tag, *output); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(binary, version, tag, output string) error {
	for flagName, value := range map[string]string{"binary": binary, "version": version, "tag": tag, "output": output} {
		if value == "" {
			return fmt.Errorf("--%s is empty: give all of --binary, --version, --tag and --output", flagName)
		}
	}
	ref, err := name.NewTag(tag, name.WithDefaultRegistry(""))
	if err != nil {
		return fmt.Errorf("--tag %q: %w", tag, err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("--binary: %w", err)
	}
	img, err := pack(filepath.Base(binary), version, content)
	if err != nil {
		return fmt.Errorf("--binary %s: %w", binary, err)
	}
	if err := tarball.WriteToFile(output, ref, img); err != nil {
		return fmt.Errorf("writing %s: %w", output, err)
	}
	return nil
}
