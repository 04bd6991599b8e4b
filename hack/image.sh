#!/usr/bin/env bash
# Copyright 2026 The Espalier Authors.
# SPDX-License-Identifier: Apache-2.0

# Packs binaries that are already built into images, without an engine and without a
# registry: _output/images/NAME-linux-ARCH.tar, for docker load or kind load image-archive.
# They are named NAME:VERSION, below REGISTRY where that is given.
#
# usage: hack/image.sh BINARY...

set -euo pipefail
# shellcheck source=hack/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_tool image
version=$(hack/version.sh --short)
arch=${GOARCH:-$(go env GOARCH)}
images=${IMAGES:-_output/images}
mkdir -p "$images"
for binary in "$@"; do
  name=$(basename "$binary")
  # A tag has no plus, which a version may have.
  tag=${REGISTRY:+${REGISTRY%/}/}$name:${version//+/_}
  "$tools/image" --binary "$binary" --version "$version" --tag "$tag" --output "$images/$name-linux-$arch.tar"
  echo "$images/$name-linux-$arch.tar is $tag"
done
