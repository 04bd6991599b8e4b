// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	// user is a number: the kubelet cannot tell whether a name is root's.
	user   = "65532:65532"
	source = "https://github.com/espalier-scheduler/espalier"
)

// architectures are those that are released, in Go's names.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// pack makes the image of one binary.
func pack(program, version string, binary []byte) (v1.Image, error) {
	architecture, err := inspect(binary)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(program, binary)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", architecture
	file.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{
		User: user, Entrypoint: []string{"/" + program},
		Labels: map[string]string{
			"org.opencontainers.image.title":    program,
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.source":   source,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(img, file)
}

// inspect names the architecture of a binary, and refuses one that would not start
// where there is nothing beside it.
func inspect(binary []byte) (string, error) {
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return "", fmt.Errorf("it is no binary for Linux: %w", err)
	}
	for _, program := range f.Progs {
		if program.Type == elf.PT_INTERP {
			return "", errors.New("it is linked dynamically, and an image from scratch has no libraries: build it with CGO_ENABLED=0")
		}
	}
	architecture, ok := architectures[f.Machine]
	if !ok {
		return "", fmt.Errorf("it is for %v: build it for amd64 or arm64", f.Machine)
	}
	return architecture, nil
}

// layerOf is a layer with one file that everybody may run and nobody may change.
func layerOf(program string, binary []byte) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	header := &tar.Header{Name: program, Typeflag: tar.TypeReg, Mode: 0o555, Size: int64(len(binary)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(binary); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
}
